// SPDX-License-Identifier: Apache-2.0
// Two workers on one shard: one that has lost the lease and does not know it, and its successor.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/run_options.hpp"

using kclxx::sequence_position;
using kclxx::test::Contains;
using names = std::vector<std::string>;
using namespace std::chrono_literals;

namespace {

/// Keeps what it gets, and shares a log with the other one.
class reader : public kclxx::record_processor {
 public:
  explicit reader(const kclxx::shard_context& context, std::function<void()> in_callback)
      : in_callback_(std::move(in_callback)) {
    context.every(5s, [this, &context] {
      fired_at.push_back(context.now());
      if (in_timer) in_timer();
    });
  }
  void process_records(kclxx::record_batch batch, const kclxx::checkpointer&) override {
    for (const kclxx::record& one : batch) read.emplace_back(one.data());
    if (in_callback_) in_callback_();
  }

  names read;
  std::function<void()> in_timer;
  std::vector<std::chrono::steady_clock::time_point> fired_at;

 private:
  std::function<void()> in_callback_;
};

kclxx::testing::worker reading(std::function<void()> in_callback = {}) {
  return kclxx::testing::worker(
      [in_callback](const kclxx::shard_context& context) {
        return std::make_unique<reader>(context, in_callback);
      },
      kclxx::test::prompt());
}

}  // namespace

TEST_CASE("a successor begins at what is persisted, and the old worker cannot checkpoint",
          "[testing][P42]") {
  auto old = reading();
  old.initialize("shard-7").deliver({"a"}).fail_next_checkpoint("ThrottlingException");
  old.deliver({"b"});
  auto successor = old.start_successor();
  INFO(old << "\n" << successor);
  CHECK(successor.processor<reader>().read == names{"b"});
  CHECK(successor.persisted() == sequence_position("2"));
  CHECK(old.persisted() == sequence_position("2"));

  successor.advance(1s);  // the retry of the old one is due
  old.deliver({"c"});
  CHECK(old.processor<reader>().read == names{"a", "b", "c"});
  CHECK(old.attempts().back().error == "ShutdownException");
  CHECK(old.stop_requested());
  CHECK_FALSE(successor.stop_requested());
  CHECK(old.persisted() == sequence_position("2"));
  old.lose_lease();  // its successor keeps it
  CHECK(old.exit_status() == kclxx::exit_status::ok);
  CHECK(successor.deliver({}).persisted() == sequence_position("3"));
}

TEST_CASE("both workers read the same records, each at its own pace", "[testing]") {
  auto old = reading();
  old.initialize().deliver({"a"});
  auto successor = old.start_successor();
  successor.deliver({"b", "c"}).deliver({"d"});
  CHECK(old.processor<reader>().read == names{"a"});
  old.deliver({"e"});
  CHECK(old.processor<reader>().read == names{"a", "b", "c", "d", "e"});
  CHECK(successor.processor<reader>().read == names{"b", "c", "d"});
  successor.deliver({});
  CHECK(successor.processor<reader>().read == names{"b", "c", "d", "e"});
}

TEST_CASE("a worker that is not driven is suspended: its timers fire late", "[testing]") {
  auto old = reading();
  const auto start = old.initialize().now();
  auto successor = old.start_successor();
  successor.advance(7s);
  CHECK(successor.processor<reader>().fired_at == std::vector{start + 5s});
  CHECK(old.processor<reader>().fired_at.empty());
  CHECK(old.now() == start + 7s);
  old.advance(0ms);
  CHECK(old.processor<reader>().fired_at == std::vector{start + 7s});
}

TEST_CASE("a callback that was due after a timer which gave the shard up does not begin",
          "[testing][P67]") {
  auto old = reading();
  old.initialize();
  kclxx::testing::worker successor = old.start_successor();
  old.processor<reader>().in_timer = [] { throw kclxx::fenced_error("epoch 2, not 1"); };
  successor.advance(7s);
  old.deliver({"a"});  // its timer fires first
  INFO(old);
  CHECK(old.processor<reader>().read.empty());
  CHECK(old.callbacks() == names{"initialize"});
  CHECK_FALSE(old.exit_status());
}

TEST_CASE("a successor may start, and finish, within a callback of the old worker", "[testing]") {
  kclxx::testing::worker* suspended = nullptr;
  std::optional<kclxx::testing::worker> successor;
  bool is_suspended = false;
  auto old = reading([&] {
    if (std::exchange(is_suspended, true)) return;
    successor.emplace(suspended->start_successor());
    successor->end_shard();
  });
  suspended = &old;
  old.initialize().deliver({"a"});
  REQUIRE(successor);
  INFO(old << "\n" << *successor);
  CHECK(successor->processor<reader>().read == names{"a"});
  CHECK(successor->exit_status() == kclxx::exit_status::ok);
  CHECK(old.persisted() == sequence_position("SHARD_END"));
  CHECK(old.attempts().back().error == "ShutdownException");
  CHECK_THROWS_WITH(old.start_successor(), Contains("the shard is finished"));
}

TEST_CASE("who resumes takes the lease back", "[testing]") {
  auto old = reading();
  CHECK_THROWS_WITH(old.start_successor(), Contains("initialize comes first"));
  old.initialize().deliver({"a"});
  auto successor = old.start_successor();
  auto third = successor.start_successor();
  third.deliver({"b"});
  old.crash().resume();
  CHECK(old.deliver({"c"}).persisted() == sequence_position("3"));
  third.deliver({});
  CHECK(third.attempts().back().error == "ShutdownException");
  CHECK(successor.persisted() == sequence_position("3"));
}
