// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/java_options.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace kclxx::tool;

namespace {

using words = std::vector<std::string>;

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

words chosen(const usable_machine& machine, bool is_busy, const words& given = {}) {
  return java_options({machine, is_busy, "/a.jsa"}, given);
}

/// What begins so; empty: nothing does.
std::string beginning(const words& options, const std::string& text) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const std::string& one) { return one.starts_with(text); });
  return found == options.end() ? "" : *found;
}

}  // namespace

TEST_CASE("by default Java takes little memory and compiles fast", "[java_options]") {
  CHECK(chosen({2, 4 * gib}, false) == words{"-XX:+UseSerialGC", "-Xmx1024m", "-Xms192m", "-Xmn64m",
                                             "-XX:TieredStopAtLevel=1", "-XX:MetaspaceSize=96m",
                                             "-XX:SharedArchiveFile=/a.jsa"});
}

TEST_CASE("a busy Java has a young generation for the garbage of many calls, and all compilers",
          "[java_options]") {
  CHECK(chosen({1, 4 * gib}, true) == words{"-XX:+UseSerialGC", "-Xmx2048m", "-Xms1328m",
                                            "-Xmn1200m", "-XX:MetaspaceSize=96m",
                                            "-XX:SharedArchiveFile=/a.jsa"});
  CHECK(beginning(chosen({2, 64 * gib}, true), "-Xmn") == "-Xmn1200m");
}

TEST_CASE("a busy Java collects with several threads where there are CPUs for them",
          "[java_options]") {
  for (const unsigned cpus : {1U, 2U, 4U, 64U}) {
    CAPTURE(cpus);
    const words busy = chosen({cpus, 64 * gib}, true);
    const bool is_parallel = cpus > 1;
    CHECK((beginning(busy, "-XX:+UseParallelGC").empty()) == !is_parallel);
    CHECK((beginning(busy, "-XX:+UseSerialGC").empty()) == is_parallel);
    CHECK(beginning(busy, "-XX:ParallelGCThreads=") == (cpus > 4 ? "-XX:ParallelGCThreads=4" : ""));
    CHECK(chosen({cpus, 64 * gib}, false).front() == "-XX:+UseSerialGC");
  }
}

TEST_CASE("the heap follows the memory: never less than Java's own quarter, below 32 GiB",
          "[java_options]") {
  const auto heap = [](std::uint64_t memory, bool is_busy = false) {
    return beginning(chosen({2, memory}, is_busy), "-Xmx");
  };
  CHECK(heap(256 * mib) == "-Xmx128m");
  CHECK(heap(512 * mib) == "-Xmx256m");
  CHECK(heap(1 * gib) == "-Xmx512m");
  CHECK(heap(2 * gib) == "-Xmx512m");
  CHECK(heap(16 * gib) == "-Xmx4096m");
  CHECK(heap(1024 * gib) == "-Xmx31744m");
  CHECK(heap(16 * gib, true) == "-Xmx8192m");
  CHECK(heap(1024 * gib, true) == "-Xmx31744m");
  CHECK(heap(0).empty());
}

TEST_CASE("the generations fit into the heap, whoever chose it", "[java_options]") {
  const auto sizes = [](std::uint64_t memory, bool is_busy, const words& given) {
    const words options = chosen({2, memory}, is_busy, given);
    return beginning(options, "-Xms") + " " + beginning(options, "-Xmn");
  };
  CHECK(sizes(256 * mib, false, {}) == "-Xms128m -Xmn42m");
  CHECK(sizes(256 * mib, true, {}) == "-Xms128m -Xmn76m");
  CHECK(sizes(16 * gib, true, {"-Xmx256m"}) == "-Xms256m -Xmn153m");
  CHECK(sizes(16 * gib, true, {"-Xmx1G", "-XX:MaxHeapSize=524288k"}) == "-Xms435m -Xmn307m");
  CHECK(sizes(16 * gib, true, {"-XX:MaxRAMPercentage=10"}) == " ");
  CHECK(sizes(16 * gib, true, {"-Xmxmuch"}) == " ");
}

TEST_CASE("what the user decides is left out, and nothing else", "[java_options]") {
  struct decision {
    words given;
    words left_out;
  };
  const auto& [given, left_out] = GENERATE(
      decision{{"-XX:+UseG1GC"}, {"-XX:+UseParallelGC", "-Xms1328m", "-Xmn1200m"}},
      decision{{"-XX:-UseParallelGC"}, {"-XX:+UseParallelGC", "-Xms1328m", "-Xmn1200m"}},
      decision{{"-XX:+UseZGC", "-XX:+ZGenerational"},
               {"-XX:+UseParallelGC", "-Xms1328m", "-Xmn1200m"}},
      decision{{"-Xmx2048m"}, {"-Xmx2048m"}}, decision{{"-Xms1g"}, {"-Xms1328m", "-Xmn1200m"}},
      decision{{"-Xmn64m"}, {"-Xms1328m", "-Xmn1200m"}},
      decision{{"-XX:NewRatio=1"}, {"-Xms1328m", "-Xmn1200m"}},
      decision{{"-XX:MetaspaceSize=1m"}, {"-XX:MetaspaceSize=96m"}},
      decision{{"-Xshare:off"}, {"-XX:SharedArchiveFile=/a.jsa"}},
      decision{{"-XX:SharedArchiveFile=b"}, {"-XX:SharedArchiveFile=/a.jsa"}},
      decision{{"-cp", "/mine/*"}, {"-XX:SharedArchiveFile=/a.jsa"}},
      decision{{"-Da=-Xmx1g", "-XX:+UseNUMA", "-XX:ParallelGCThreads=2", "-Xlog:gc", "-ea"}, {}});
  CAPTURE(given);
  words expected = chosen({2, 4 * gib}, true);
  std::erase_if(expected, [&, &without = left_out](const std::string& one) {
    return std::find(without.begin(), without.end(), one) != without.end();
  });
  CHECK(chosen({2, 4 * gib}, true, given) == expected);
  CHECK(chosen({2, 4 * gib}, true).size() == expected.size() + left_out.size());
}

TEST_CASE("the user's choice of a compiler is left alone", "[java_options]") {
  for (const char* one : {"-XX:TieredStopAtLevel=4", "-XX:-TieredCompilation", "-Xint"}) {
    CHECK(beginning(chosen({2, 4 * gib}, false, {one}), "-XX:TieredStopAtLevel").empty());
  }
}

TEST_CASE("without an archive none is named", "[java_options]") {
  CHECK(beginning(java_options({{2, gib}, false, ""}, {}), "-XX:SharedArchiveFile").empty());
  CHECK(decides_class_archive({"-Xmx1g", "-Xshare:auto"}));
  CHECK_FALSE(decides_class_archive({"-Xmx1g"}));
}

namespace {

/// The control groups of a process, as files.
class groups {
 public:
  explicit groups(const std::string& of_process) { write("proc/self/cgroup", of_process); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_.path() / name).parent_path());
    std::ofstream(root_.path() / name) << text << '\n';
  }
  [[nodiscard]] words share() const {
    const usable_machine found = within_cgroups({8, 16 * gib}, root_.path());
    return {std::to_string(found.cpus), std::to_string(found.memory / mib)};
  }

 private:
  kclxx::test::temporary_folder root_;
};

const words whole{"8", "16384"};

}  // namespace

TEST_CASE("a group of version 2 and those above it limit CPUs and memory", "[cgroup]") {
  const groups found("0::/kubepods/pod1");
  CHECK(found.share() == whole);
  found.write("sys/fs/cgroup/kubepods/pod1/memory.max", "max");
  found.write("sys/fs/cgroup/kubepods/pod1/cpu.max", "max 100000");
  CHECK(found.share() == whole);
  found.write("sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000");
  CHECK(found.share() == words{"2", "16384"});
  found.write("sys/fs/cgroup/kubepods/memory.max", "1073741824");
  CHECK(found.share() == words{"2", "1024"});
  found.write("sys/fs/cgroup/cpu.max", "10000 100000");
  CHECK(found.share() == words{"1", "1024"});
}

TEST_CASE("groups of version 1 limit CPUs and memory, each in its own tree", "[cgroup]") {
  const groups found("5:memory:/docker/1\n4:cpu,cpuacct:/docker/2\n3:cpuset:/\n0::/");
  found.write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "9223372036854771712");
  found.write("sys/fs/cgroup/cpu/docker/2/cpu.cfs_quota_us", "-1");
  found.write("sys/fs/cgroup/cpu/docker/2/cpu.cfs_period_us", "100000");
  CHECK(found.share() == whole);
  found.write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "536870912");
  found.write("sys/fs/cgroup/cpu/docker/2/cpu.cfs_quota_us", "400000");
  CHECK(found.share() == words{"4", "512"});
}

TEST_CASE("a container that sees its own group as the uppermost is limited by it", "[cgroup]") {
  const groups found("5:memory:/docker/1\n0::/docker/1");
  found.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912");
  found.write("sys/fs/cgroup/cpu.max", "200000 100000");
  CHECK(found.share() == words{"2", "512"});
}

TEST_CASE("what is no number limits nothing", "[cgroup]") {
  const groups found("nonsense\n0::/a");
  found.write("sys/fs/cgroup/a/memory.max", "1g");
  found.write("sys/fs/cgroup/a/cpu.max", "1 0");
  CHECK(found.share() == whole);
}
