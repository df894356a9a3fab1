// SPDX-License-Identifier: Apache-2.0
// `kclxx health` over the files of a real child, and over files that are wrong.
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "io/descriptor.hpp"
#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refused_call.hpp"
#include "support/temporary_folder.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

forked_result health(const fs::path& directory, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"health", directory.string()});
  return sandbox().kclxx(options);
}

std::string figures(double oldest_call, long process) {
  return "# HELP x\nkclxx_behind_latest_seconds{application=\"a\",shard=\"shardId-5\"} 86400\n"
         "kclxx_oldest_call_timestamp_seconds{application=\"a\",shard=\"shardId-5\"} " +
         std::to_string(oldest_call) +
         "\nkclxx_process_id{application=\"a\",shard=\"shardId-5\"} " + std::to_string(process) +
         "\n";
}

double date() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class metrics_folder {
 public:
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }
  [[nodiscard]] std::string file() const { return (path() / "kclxx.a.shardId-5.prom").string(); }
  /// As a process that lives.
  void write(const std::string& text, std::chrono::seconds age = 0s) {
    std::ofstream(file()) << text;
    fs::last_write_time(file(), fs::file_time_type::clock::now() - age);
    writer_ = kclxx::io::descriptor(::open(file().c_str(), O_WRONLY | O_CLOEXEC));
    struct flock whole {};
    whole.l_type = F_WRLCK;
    REQUIRE(::fcntl(writer_.get(), F_OFD_SETLK, &whole) == 0);
  }
  void end_writer() { writer_.close(); }

 private:
  temporary_folder folder_;
  kclxx::io::descriptor writer_;
};

}  // namespace

TEST_CASE("a child is alive until its callback runs for too long, and its death is not its fault") {
  const metrics_folder folder;
  scripted_daemon daemon(
      {child, "fast_metrics"},
      {.input_file = {}, .environment = {"KCLXX_METRICS_DIR=" + folder.path().string()}});
  start(daemon);
  const auto is_alive = [&] { return health(folder.path(), {"--stuck-after", "2"}); };
  REQUIRE(eventually([&] {
    return health(folder.path()).out.find("no handler is stuck in 1 shard") != std::string::npos;
  }));
  CHECK(is_alive().status == 0);

  daemon.records({"sleep"});
  REQUIRE(eventually([&] { return is_alive().status == 1; }));
  const std::string line = is_alive().out;
  CHECK_THAT(line,
             Contains("/kclxx.unknown.unknown.shardId-000000000007.prom: shardId-000000000007 is "
                      "stuck: a handler or callback of process "));
  CHECK(health(folder.path()).status == 0);

  daemon.kill();
  daemon.wait_exit();
  const auto dead = is_alive();
  CHECK(dead.status == 0);
  CHECK_THAT(dead.out,
             Contains("no handler is stuck in 0 shards; 1 left by processes that have ended"));
}

TEST_CASE("a file that is not written any more is stale while its process lives") {
  metrics_folder folder;
  folder.write(figures(0, 77), 3s);
  CHECK(health(folder.path()).status == 0);
  const auto stale = health(folder.path(), {"--stale-after", "1"});
  CHECK(stale.status == 1);
  CHECK_THAT(stale.out,
             Contains(folder.file() + ": shardId-5 is stale: process 77 has written nothing for"));
  folder.write(figures(0, 0), 3600s);
  SECTION("its lease has ended") {}
  SECTION("it has ended, and another process has its number") {
    folder.write(figures(0, ::getpid()), 3600s);
    folder.end_writer();
  }
  const auto ended = health(folder.path());
  CHECK(ended.status == 0);
  CHECK_THAT(ended.out, Contains("1 left by processes that have ended"));
}

TEST_CASE("a process counts whose number is of another pid namespace") {
  metrics_folder folder;
  const pid_t ended = ::fork();
  if (ended == 0) std::_Exit(0);
  ::waitpid(ended, nullptr, 0);
  folder.write(figures(date() - 601, ended));
  const auto stuck = health(folder.path());
  CHECK(stuck.status == 1);
  CHECK_THAT(stuck.out, Contains("shardId-5 is stuck"));
}

TEST_CASE("how far a shard is behind does not count, nor a wait for a retry") {
  metrics_folder folder;
  folder.write(figures(date() + 60, ::getpid()));
  const auto found = health(folder.path());
  CHECK(found.status == 0);
  CHECK(found.out == folder.path().string() + ": no handler is stuck in 1 shard\n");
  folder.write(figures(date() - 601, ::getpid()));
  CHECK(health(folder.path()).status == 1);
  folder.write(figures(date() - 590, ::getpid()));
  CHECK(health(folder.path()).status == 0);
}

TEST_CASE("an outage is told, and is no fault of the shard") {
  metrics_folder folder;
  folder.write(figures(0, ::getpid()) + "kclxx_circuit_open{shard=\"shardId-5\"} 1\n");
  const auto seen = health(folder.path());
  CHECK(seen.status == 0);
  CHECK_THAT(seen.out, Contains("in 1 shard; 1 of them in an outage (the circuit is open)"));
}

TEST_CASE("a stranger's lock on the file of a process that has ended changes nothing") {
  metrics_folder folder;
  folder.write(figures(0, 4711), 600s);
  CHECK(health(folder.path()).status == 1);
  folder.end_writer();
  const kclxx::io::descriptor stranger(::open(folder.file().c_str(), O_RDONLY | O_CLOEXEC));
  struct flock shared {};
  shared.l_type = F_RDLCK;
  REQUIRE(::flock(stranger.get(), LOCK_EX) == 0);
  REQUIRE(::fcntl(stranger.get(), F_OFD_SETLK, &shared) == 0);
  const auto seen = health(folder.path());
  CHECK(seen.status == 0);
  CHECK_THAT(seen.out,
             Contains("no handler is stuck in 0 shards; 1 left by processes that have ended"));
}

TEST_CASE("without the file system's locks a process that writes no more is no healthy one") {
  metrics_folder folder;
  const sandbox box;
  const auto health_without_locks = [&] {
    return in_forked_copy([&] {
      refuse_call(SYS_fcntl, EINVAL, F_OFD_GETLK);
      box.become({KCLXX_TOOL, "health", folder.path().string()});
      return 98;
    });
  };
  folder.write(figures(0, 77), 600s);
  const auto stale = health_without_locks();
  CHECK(stale.status == 1);
  CHECK_THAT(stale.out, Contains("shardId-5 is stale: process 77 has written nothing for") &&
                            Contains("whether it has ended is not known"));
  folder.write(figures(date() - 601, 77));
  CHECK_THAT(health_without_locks().out, Contains("shardId-5 is stuck"));
  folder.write(figures(0, 77));
  CHECK(health_without_locks().out ==
        folder.path().string() + ": no handler is stuck in 1 shard\n");
  folder.write(figures(0, 0), 600s);
  const auto ended = health_without_locks();
  CHECK(ended.status == 0);
  CHECK_THAT(ended.out, Contains("1 left by processes that have ended"));
}

TEST_CASE("health reads regular files alone, and no more than a file of metrics can have") {
  metrics_folder folder;
  SECTION("not a device behind a link") {
    fs::create_symlink("/dev/zero", folder.file());
    CHECK_THAT(health(folder.path()).out, Contains(folder.file() + ": it cannot be read: "));
  }
  SECTION("not a FIFO") {
    REQUIRE(::mkfifo(folder.file().c_str(), 0600) == 0);
    CHECK_THAT(health(folder.path()).out, Contains("it is no regular file"));
  }
  SECTION("not an endless file") {
    std::ofstream(folder.file()) << "x";
    fs::resize_file(folder.file(), std::uintmax_t{1} << 40);
    CHECK_THAT(health(folder.path()).out, Contains("it is too long"));
  }
  CHECK(health(folder.path()).status == 1);
}

TEST_CASE("what health cannot use is named") {
  metrics_folder folder;
  const auto empty = health(folder.path());
  CHECK(empty.status == 1);
  CHECK_THAT(empty.out, Contains("has no files of kclxx (KCLXX_METRICS_DIR)"));
  CHECK(health(folder.path(), {"--allow-empty"}).status == 0);
  std::ofstream(folder.path() / "other.prom") << "x 1\n";
  std::ofstream(folder.path() / "kclxx-leases.a.b.prom") << "kclxx_leases_gained_total 1\n";
  CHECK(health(folder.path()).out == empty.out);

  const std::string text = figures(0, ::getpid());
  const auto broken = GENERATE_COPY(std::string(), text.substr(0, text.size() - 1),
                                    text.substr(0, text.size() / 2), figures(-1, ::getpid()));
  folder.write(broken);
  const auto garbled = health(folder.path());
  CHECK(garbled.status == 1);
  CHECK_THAT(garbled.out, Contains(folder.file() + ": it is garbled: "));
  CHECK(health(folder.path() / "missing").status == 5);
}
