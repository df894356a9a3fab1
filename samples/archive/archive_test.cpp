// SPDX-License-Identifier: Apache-2.0
// The archive under the test kit: a crash, a successor and a full disk at each step of a commit.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <zlib.h>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <kclxx/testing/daemon.hpp>

#include "archive.hpp"

using played = kclxx::testing::daemon;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;
using lines = std::vector<std::string>;

class temporary_folder {
 public:
  temporary_folder() {
    std::string name = fs::temp_directory_path() / "archive.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Calls a function before and after each change of the store.
class watched_store final : public store {
 public:
  explicit watched_store(const fs::path& folder) : inner_(folder) {}

  std::function<void()> on_step = [] {};

  void put(const std::string& name, std::string_view content) override {
    step([&] { inner_.put(name, content); });
  }
  bool put_if_absent(const std::string& name, std::string_view content) override {
    bool is_made = false;
    step([&] { is_made = inner_.put_if_absent(name, content); });
    return is_made;
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
    return inner_.get(name);
  }
  void move(const std::string& name, const std::string& final_name) override {
    step([&] { inner_.move(name, final_name); });
  }
  [[nodiscard]] lines list(const std::string& folder) const override { return inner_.list(folder); }
  void remove(const std::string& name) override {
    step([&] { inner_.remove(name); });
  }

 private:
  template <class Change>
  void step(Change change) {
    on_step();
    change();
    on_step();
  }

  folder_store inner_;
};

/// Parked records, in memory.
struct parked final : kclxx::parking_lot {
  void park(const kclxx::shard_context&, std::span<const kclxx::failed_record> failed) override {
    for (const kclxx::failed_record& one : failed) errors.push_back(one.last_error);
  }
  lines errors;
};

std::string event_at(const std::string& date_and_hour, const std::string& name) {
  const auto at = date_and_hour == "1970-01-01T00" ? "1" : "3600000";
  return R"({"at":)" + std::string(at) + R"(,"name":")" + name + "\"}";
}
std::string first(const std::string& name) { return event_at("1970-01-01T00", name); }
std::string second(const std::string& name) { return event_at("1970-01-01T01", name); }

class test_archive {
 public:
  test_archive() : watched_(std::make_shared<watched_store>(folder_.path())) {}

  /// A successor cuts the records into other batches than the first processor.
  [[nodiscard]] played worker() const {
    kclxx::run_options options;
    options.checkpoint_interval = 0s;
    const auto make = [store = watched_, lot = lot_, records = std::make_shared<std::size_t>(5)](
                          const kclxx::shard_context& shard) {
      if (*records > 2) --*records;
      return archive(store, {.records = *records, .time = 10s}, lot)(shard);
    };
    return played(make, options);
  }
  [[nodiscard]] watched_store& store() const { return *watched_; }
  [[nodiscard]] const parked& lot() const { return *lot_; }
  [[nodiscard]] fs::path path() const { return folder_.path(); }

  /// The lines of an hour's files, in the order of their names.
  [[nodiscard]] lines events(const std::string& hour) const {
    std::vector<fs::path> files;
    if (fs::is_directory(path() / hour)) {
      for (const auto& entry : fs::directory_iterator(path() / hour)) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    lines result;
    for (const fs::path& file : files) {
      const std::unique_ptr<gzFile_s, decltype(&::gzclose)> in(::gzopen(file.c_str(), "rb"),
                                                               ::gzclose);
      char line[1000];
      while (::gzgets(in.get(), line, sizeof line) != nullptr) {
        result.emplace_back(line);
        result.back().pop_back();
      }
    }
    return result;
  }
  [[nodiscard]] std::size_t staged() const {
    return folder_store(path()).list("staged/shard-0").size();
  }

 private:
  temporary_folder folder_;
  std::shared_ptr<watched_store> watched_;
  std::shared_ptr<parked> lot_ = std::make_shared<parked>();
};

/// Calls `fault` at the first step, in a further archive at the second, and so on, until a dialogue
/// has fewer steps. `play` is the dialogue.
template <class Fault, class Play>
int at_each_step(Fault fault, Play play) {
  for (int faulty = 1;; ++faulty) {
    const test_archive archive;
    played worker = archive.worker();
    int step = 0;
    archive.store().on_step = [&] {
      if (++step == faulty) fault(worker, archive);
    };
    play(worker);
    CAPTURE(faulty);
    INFO(worker);
    CHECK(archive.events("1970-01-01T00") == lines{first("a"), first("c"), first("e")});
    CHECK(archive.events("1970-01-01T01") == lines{second("b"), second("d")});
    if (step < faulty) return faulty - 1;
  }
}

}  // namespace

TEST_CASE("each event is in a file of its hour, which is complete once it has its name") {
  const test_archive archive;
  played worker = archive.worker();
  worker.initialize("shard-0").deliver({first("a"), second("b")}).deliver({first("c")});
  CHECK(archive.events("1970-01-01T00").empty());
  worker.advance(10s).deliver({});
  INFO(worker);
  CHECK(archive.events("1970-01-01T00") == lines{first("a"), first("c")});
  CHECK(archive.events("1970-01-01T01") == lines{second("b")});
  CHECK(fs::exists(archive.path() / "1970-01-01T00/shard-0.000000000001.json.gz"));
  CHECK(archive.staged() == 0);
  CHECK(worker.persisted() == kclxx::sequence_position("3"));
}

TEST_CASE("an event is one line, as it came") {
  const test_archive archive;
  played worker = archive.worker();
  worker.initialize("shard-0")
      .deliver({"{\"at\" :\r\n1, \"n\": 12345678901234567890.10}"})
      .end_shard();
  INFO(worker);
  CHECK(archive.events("1970-01-01T00") == lines{"{\"at\" :  1, \"n\": 12345678901234567890.10}"});
}

TEST_CASE("what is no event is parked, and the others are archived") {
  const test_archive archive;
  played worker = archive.worker();
  worker.initialize("shard-0");
  worker.deliver({"{}", first("a"), R"({"at":1.5})", R"({"at":-1})"});
  worker.deliver({R"({"at":253402300800000})", R"({"at":253402300799999})", "no JSON"}).end_shard();
  INFO(worker);
  CHECK(archive.lot().errors.size() == 5);
  CHECK(archive.events("1970-01-01T00") == lines{first("a")});
  CHECK(archive.events("9999-12-31T23").size() == 1);
  CHECK(worker.persisted() == kclxx::sequence_position("SHARD_END"));
}

TEST_CASE("a worker that crashes at any step leaves nothing out, and nothing twice") {
  const int steps = at_each_step([](played& worker, const test_archive&) { worker.crash(); },
                                 [](played& worker) {
                                   const auto survive = [&](auto action) {
                                     action();
                                     if (!worker.exit_status() && worker.stop_requested())
                                       worker.resume();
                                   };
                                   worker.initialize("shard-0");
                                   survive([&] { worker.deliver({first("a"), second("b")}); });
                                   survive([&] { worker.deliver({first("c"), second("d")}); });
                                   survive([&] { worker.deliver({first("e")}); });
                                   survive([&] { worker.end_shard(); });
                                   if (!worker.exit_status()) worker.end_shard();
                                 });
  CHECK(steps > 12);
}

TEST_CASE("of two workers at any step, each event is archived by one") {
  std::optional<played> successor;
  const int steps = at_each_step(
      [&](played& worker, const test_archive&) {
        successor.emplace(worker.start_successor());
        successor->advance(10s).deliver({});
      },
      [&](played& worker) {
        successor.reset();
        worker.initialize("shard-0").deliver({first("a"), second("b")});
        worker.deliver({first("c"), second("d")}).deliver({first("e")}).advance(10s);
        if (successor) successor->deliver({}).end_shard();
      });
  CHECK(steps > 6);
}

TEST_CASE("while the disk is full at any step the shard waits, and no event is parked") {
  const int steps = at_each_step(
      [](played&, const test_archive& archive) {
        CHECK(archive.lot().errors.empty());
        throw std::system_error(ENOSPC, std::generic_category(), "played");
      },
      [](played& worker) {
        worker.initialize("shard-0").deliver({first("a"), second("b")});
        worker.deliver({first("c"), second("d")}).deliver({first("e")}).end_shard();
        CHECK(worker.exit_status() == kclxx::exit_status::ok);
      });
  CHECK(steps > 12);
}

TEST_CASE(
    "the newest of any number of commits is found, and what failed attempts have staged goes") {
  const temporary_folder folder;
  const auto store = std::make_shared<folder_store>(folder.path());
  store->put("staged/shard-0/000000000100.x.1970-01-01T00", "lost");
  store->put("staged/shard-0/000000000101.x.1970-01-01T00", "may still be committed");
  for (int number = 1; number <= 100; ++number) {
    const std::string digits = std::to_string(number);
    store->put_if_absent("commits/shard-0/" + std::string(12 - digits.size(), '0') + digits,
                         R"({"position":")" + digits + R"(/0","files":{}})");
  }
  shard_archive of_shard(store, "shard-0");
  of_shard.add({});
  CHECK(store->list("staged/shard-0") == lines{"staged/shard-0/000000000101.x.1970-01-01T00"});
}
