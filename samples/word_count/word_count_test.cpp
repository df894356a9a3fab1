// SPDX-License-Identifier: Apache-2.0
// word_count under the test kit, whose seconds pass at once. Everything runs on this thread.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <kclxx/testing/worker.hpp>

#include "counts.hpp"
#include "disk.hpp"
#include "word_count.hpp"

using kclxx::sequence_position;
using namespace std::chrono_literals;

namespace {

class word_count_directory {
 public:
  word_count_directory() {
    std::string name = std::filesystem::temp_directory_path() / "word_count.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~word_count_directory() { std::filesystem::remove_all(path_); }
  word_count_directory(const word_count_directory&) = delete;
  word_count_directory& operator=(const word_count_directory&) = delete;

  /// A daemon whose shards are counted here.
  [[nodiscard]] kclxx::testing::worker worker(std::chrono::seconds flush_interval = 5s) const {
    kclxx::run_options options;
    options.checkpoint_interval = 0s;
    return kclxx::testing::worker(word_count(path_, flush_interval), options);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(path_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("a record is checkpointed once its words are in the file, every five seconds") {
  const word_count_directory directory;
  auto worker = directory.worker();
  worker.initialize("shard-0").deliver({"one two", "Two!"}).advance(4s);
  INFO(worker);
  CHECK(directory.read("shard-0.counts").empty());
  CHECK(worker.checkpoints().empty());

  worker.advance(1s).deliver({"three"});
  INFO(worker);
  CHECK(directory.read("shard-0.counts") == "position\t2\t0\nrecords\t2\none\t1\ntwo\t2\n");
  CHECK(worker.persisted() == sequence_position("2"));
}

TEST_CASE("after a crash between file and checkpoint no word is counted twice") {
  const word_count_directory directory;
  auto worker = directory.worker();
  worker.initialize("shard-0").fail_next_checkpoint("ThrottlingException");
  worker.deliver({"one two"}).advance(5s).deliver({});
  INFO(worker);
  CHECK(directory.read("shard-0.counts") == "position\t1\t0\nrecords\t1\none\t1\ntwo\t1\n");
  CHECK(worker.checkpoints().empty());

  worker.crash().resume();  // "one two" is delivered again
  worker.deliver({"two"}).end_shard();
  INFO(worker);
  CHECK(directory.read("shard-0.counts") == "position\t2\t0\nrecords\t2\none\t1\ntwo\t2\n");
  CHECK(worker.persisted() == sequence_position("SHARD_END"));
  CHECK(worker.exit_status() == kclxx::exit_status::ok);
}

TEST_CASE("a shutdown may come before the records that the file is ahead by") {
  const word_count_directory directory;
  directory.worker().initialize("shard-0").deliver({"one"}).advance(5s);
  auto successor = directory.worker();
  successor.initialize("shard-0").request_shutdown().end_input();
  INFO(successor);
  CHECK(directory.read("shard-0.counts") == "position\t1\t0\nrecords\t1\none\t1\n");
  CHECK(successor.checkpoints().empty());
  CHECK(successor.exit_status() == kclxx::exit_status::ok);
}

TEST_CASE("a shutdown flushes what is not yet in the file") {
  const word_count_directory directory;
  auto worker = directory.worker();
  worker.initialize("shard-0").deliver({"one"}).request_shutdown().end_input();
  INFO(worker);
  CHECK(directory.read("shard-0.counts") == "position\t1\t0\nrecords\t1\none\t1\n");
  CHECK(worker.persisted() == sequence_position("1"));
}

TEST_CASE("a lost lease leaves the counts to the new owner") {
  const word_count_directory directory;
  auto worker = directory.worker();
  worker.initialize("shard-0").deliver({"one"}).lose_lease().advance(5s);
  INFO(worker);
  CHECK(directory.read("shard-0.counts").empty());
  CHECK(worker.exit_status() == kclxx::exit_status::ok);
}

TEST_CASE("a worker that lost its lease and wakes up counts nothing twice, and undoes nothing") {
  const word_count_directory directory;
  auto suspended = directory.worker();
  suspended.initialize("shard-0").deliver({"a", "b"});  // in memory, not in the file
  auto successor = suspended.start_successor();         // which receives "a" and "b", too
  successor.deliver({"c"}).advance(5s).deliver({});
  CHECK(directory.read("shard-0.counts") == "position\t3\t0\nrecords\t3\na\t1\nb\t1\nc\t1\n");
  CHECK(successor.persisted() == sequence_position("3"));

  suspended.advance(5s);  // it wakes up, and its flush is due
  CHECK(directory.read("shard-0.counts") == "position\t3\t0\nrecords\t3\na\t1\nb\t1\nc\t1\n");
  suspended.lose_lease();  // at last
  CHECK(suspended.exit_status() == kclxx::exit_status::ok);
}

TEST_CASE(
    "a worker that lost its lease may count first: its successor leaves out what that has "
    "counted") {
  const word_count_directory directory;
  auto suspended = directory.worker(0s);  // flushes with each batch
  suspended.initialize("shard-0").deliver({"a"});
  auto successor = suspended.start_successor();
  suspended.deliver({"b"}).deliver({"c"});
  successor.deliver({"d"});  // with "b" and "c"
  INFO(successor);
  CHECK(directory.read("shard-0.counts") == "position\t4\t0\nrecords\t4\na\t1\nb\t1\nc\t1\nd\t1\n");
}

TEST_CASE("of several writers at the same time none loses what another has written") {
  const word_count_directory directory;
  const auto file = directory.path() / "number";
  std::vector<std::thread> writers;
  writers.reserve(4);
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const disk::lock mine(directory.path() / "lock");
        int last = 0;
        std::ifstream(file) >> last;
        disk::replace(file, std::to_string(last + 1));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(directory.read("number") == "200");
}

TEST_CASE("a file that is damaged is not taken for a new one") {
  const word_count_directory directory;
  const auto file = directory.path() / "shard-0.counts";
  std::ofstream(file) << "7 or so";
  CHECK_THROWS_WITH(counts(file), file.string() + " is damaged: no position in the first line");
}
