// SPDX-License-Identifier: Apache-2.0
// word_count under the test kit: its seconds pass at once, and nothing leaves this thread.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <kclxx/testing/daemon.hpp>

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

  /// A daemon whose shards are counted here, flushed every five seconds.
  [[nodiscard]] kclxx::testing::daemon daemon() const {
    kclxx::run_options options;
    options.mode = kclxx::checkpoint_mode::manual;
    options.checkpoint_interval = 0s;
    return kclxx::testing::daemon(
        [path = path_](const kclxx::shard_context& context) {
          return std::make_unique<word_count>(context, path, 5s);
        },
        options);
  }
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
  auto daemon = directory.daemon();
  daemon.initialize("shard-0").deliver({"one two", "Two!"}).advance(4s);
  INFO(daemon);
  CHECK(directory.read("shard-0.counts").empty());
  CHECK(daemon.checkpoints().empty());

  daemon.advance(1s).deliver({"three"});
  INFO(daemon);
  CHECK(directory.read("shard-0.counts") == "position\t2\t0\nrecords\t2\none\t1\ntwo\t2\n");
  CHECK(daemon.persisted() == sequence_position("2"));
}

TEST_CASE("after a crash between file and checkpoint no word is counted twice") {
  const word_count_directory directory;
  auto daemon = directory.daemon();
  daemon.initialize("shard-0").fail_next_checkpoint("ThrottlingException");
  daemon.deliver({"one two"}).advance(5s).deliver({});
  INFO(daemon);
  CHECK(directory.read("shard-0.counts") == "position\t1\t0\nrecords\t1\none\t1\ntwo\t1\n");
  CHECK(daemon.checkpoints().empty());

  daemon.crash().resume();  // "one two" is delivered again
  daemon.deliver({"two"}).end_shard();
  INFO(daemon);
  CHECK(directory.read("shard-0.counts") == "position\t2\t0\nrecords\t2\none\t1\ntwo\t2\n");
  CHECK(daemon.persisted() == sequence_position("SHARD_END"));
  CHECK(daemon.exit_status() == kclxx::exit_status::ok);
}

TEST_CASE("a shutdown may come before the records that the file is ahead by") {
  const word_count_directory directory;
  directory.daemon().initialize("shard-0").deliver({"one"}).advance(5s);
  auto successor = directory.daemon();
  successor.initialize("shard-0").request_shutdown().end_input();
  INFO(successor);
  CHECK(directory.read("shard-0.counts") == "position\t1\t0\nrecords\t1\none\t1\n");
  CHECK(successor.checkpoints().empty());
  CHECK(successor.exit_status() == kclxx::exit_status::ok);
}

TEST_CASE("a throttled checkpoint is made up for with the next call") {
  const word_count_directory directory;
  auto daemon = directory.daemon();
  daemon.initialize("shard-0").fail_next_checkpoint("ThrottlingException");
  daemon.deliver({"one"}).advance(5s).deliver({}).advance(1s).deliver({});
  INFO(daemon);
  CHECK(daemon.attempts().front().error == "ThrottlingException");
  CHECK(daemon.persisted() == sequence_position("1"));
}

TEST_CASE("a shutdown flushes what is not yet in the file") {
  const word_count_directory directory;
  auto daemon = directory.daemon();
  daemon.initialize("shard-0").deliver({"one"}).request_shutdown().end_input();
  INFO(daemon);
  CHECK(directory.read("shard-0.counts") == "position\t1\t0\nrecords\t1\none\t1\n");
  CHECK(daemon.persisted() == sequence_position("1"));
}

TEST_CASE("a lost lease leaves the counts to the new owner") {
  const word_count_directory directory;
  auto daemon = directory.daemon();
  daemon.initialize("shard-0").deliver({"one"}).lose_lease().advance(5s);
  INFO(daemon);
  CHECK(directory.read("shard-0.counts").empty());
  CHECK(daemon.exit_status() == kclxx::exit_status::ok);
}
