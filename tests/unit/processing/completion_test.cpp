// SPDX-License-Identifier: Apache-2.0
// parallel() with completions: reported later, in any order, from any thread; in virtual time.
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

/// A processor whose records are reported by the test.
struct reported_by_test {
  explicit reported_by_test(failure_policy policy = {},
                            parallel_options options = {.order = order::none},
                            std::shared_ptr<observer> watching = nullptr)
      : daemon([this](completion done) { held.push_back(std::move(done)); }, std::move(policy),
               std::move(options), std::move(watching)) {}
  completion take(std::size_t at) {
    completion done = std::move(held.at(at));
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    return done;
  }
  bool logged(const std::string& text) const { return test::logged(daemon, text); }

  std::vector<completion> held;
  parallel_daemon daemon;
};

}  // namespace

TEST_CASE("a completion that is dropped or overwritten has failed", "[processing][completion]") {
  const bool is_overwritten = GENERATE(true, false);
  const auto lot = std::make_shared<memory_lot>();
  reported_by_test shard(parking(lot, 1));
  shard.daemon.deliver({"1", "2"});
  if (is_overwritten) {
    shard.held[0] = completion();
  } else {
    static_cast<void>(shard.take(0));
  }
  shard.daemon.deliver({});
  CHECK(lot->data() == strings{"1"});
  CHECK(shard.logged(is_overwritten ? "the completion was overwritten before it was reported"
                                    : "the completion was destroyed before it was reported"));
  shard.daemon.deliver({});
  CHECK(shard.daemon.persisted() == sequence_position("1"));
}

TEST_CASE("the circuit sees failures and successes in the order in which they were reported",
          "[processing][completion][circuit]") {
  const bool is_success_last = GENERATE(true, false);
  constexpr std::size_t failures = 20;
  reported_by_test shard({.initial_backoff = 1ms, .breaker = circuit_breaker{.failures = failures}},
                         {.lanes = failures + 1, .order = order::none});
  shard.daemon.deliver(strings(failures + 1, "x"));
  completion success = shard.take(0);
  if (!is_success_last) success.complete();
  shard.held.clear();
  if (is_success_last) success.complete();
  shard.daemon.advance(10ms);  // a thread of the pool finds the verdicts
  shard.daemon.advance(10ms);  // what failed is tried again
  CHECK(shard.logged("the circuit is open") != is_success_last);
  CHECK(shard.held.size() == (is_success_last ? failures : 0));
}

TEST_CASE("fail() passes on the exception that is being handled", "[processing][completion]") {
  reported_by_test shard({.max_attempts = 1});
  shard.daemon.deliver({"1"});
  try {
    throw std::runtime_error("the connection is closed");
  } catch (...) {
    shard.take(0).fail();
  }
  shard.daemon.advance(1ms);
  CHECK(shard.daemon.exit_status() == exit_status::callback_failed);
  CHECK(shard.logged("user code between callbacks failed: the connection is closed"));
}

TEST_CASE(
    "a permanent_error is not tried again, and fail() without an exception is reported as such",
    "[processing][completion]") {
  const auto lot = std::make_shared<memory_lot>();
  reported_by_test shard(parking(lot, 2));
  shard.daemon.deliver({"1", "2"});
  shard.take(0).fail(std::make_exception_ptr(permanent_error("not JSON")));
  shard.take(0).fail();
  shard.daemon.advance(1ms);
  CHECK(lot->data() == strings{"1"});
  shard.daemon.advance(1s);
  shard.take(0).fail();
  shard.daemon.advance(1ms);
  CHECK(lot->data() == strings{"1", "2"});
  CHECK(shard.logged("the handler reported a failure without an exception"));
}

TEST_CASE("what a handler throws is the failure of one attempt, though its completion is dropped",
          "[processing][completion]") {
  std::vector<completion> kept;
  int calls = 0;
  const bool keeps = GENERATE(true, false);
  const auto seen = std::make_shared<seen_events>();
  parallel_daemon daemon(
      [&](completion done) {
        ++calls;
        if (keeps) kept.push_back(std::move(done));
        throw std::runtime_error("no connection");
      },
      {.max_attempts = 1}, {}, seen);
  daemon.deliver({"1"});
  CHECK(calls == 1);
  REQUIRE(seen->attempts.size() == 1);
  CHECK(seen->attempts[0].error == "no connection");
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  REQUIRE(daemon.thrown());
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "no connection");
  CHECK_FALSE(logged(daemon, "reported it as complete"));
}

TEST_CASE("a handler that throws after it has reported the record as complete is logged",
          "[processing][completion]") {
  parallel_daemon daemon([&](completion done) {
    done.complete();
    throw std::runtime_error("late");
  });
  daemon.deliver({"1"}).deliver({});
  CHECK(daemon.persisted() == sequence_position("1"));
  CHECK(logged(daemon, "the handler of record 1/0 reported it as complete, and then threw: late"));
}

TEST_CASE("a completion is empty once it is reported or moved from", "[processing][completion]") {
  reported_by_test shard;
  shard.daemon.deliver({"1"});
  completion done = shard.take(0);
  CHECK(done);
  completion moved = std::move(done);
  CHECK_FALSE(done);  // NOLINT(bugprone-use-after-move): that is the test
  moved.complete();
  CHECK_FALSE(moved);
  moved.complete();
  moved.fail("no effect");
  moved.touch();
  CHECK_FALSE(completion());
  shard.daemon.deliver({});
  CHECK(shard.daemon.persisted() == sequence_position("1"));
}

namespace {

/// Sees how long the memory of batches lives.
struct watched_batches final : record_processor {
  using memory = std::vector<std::weak_ptr<const void>>;

  watched_batches(memory& seen, std::unique_ptr<record_processor> processor)
      : batches(seen), inner(std::move(processor)) {}
  void process_records(record_batch batch, const checkpointer& with) override {
    batches.emplace_back(batch.owner());
    inner->process_records(std::move(batch), with);
  }
  void lease_lost() override { inner->lease_lost(); }

  memory& batches;
  std::unique_ptr<record_processor> inner;
};

}  // namespace

TEST_CASE("a completion outlives the processor, and keeps the memory of its record alone",
          "[processing][completion]") {
  watched_batches::memory batches;
  std::vector<completion> held;
  {
    const auto form = parallel([&](completion done) { held.push_back(std::move(done)); });
    const auto watched = [&](const shard_context& shard) {
      return std::make_unique<watched_batches>(batches, form(shard));
    };
    testing::worker daemon(processor_factory(watched), prompt());
    daemon.initialize().deliver({"1"}).deliver({"2"});  // which waits for the first of its key
    REQUIRE(held.size() == 1);
    CHECK_FALSE(batches.at(1).expired());
  }
  CHECK(batches.at(1).expired());
  CHECK_FALSE(batches.at(0).expired());
  CHECK(held.front().record().data() == "1");
  held.front().touch();
  held.front().complete();
  CHECK(batches.at(0).expired());
}

TEST_CASE("the stuck clock begins with the handler, not with the record's arrival",
          "[processing][completion]") {
  reported_by_test shard({}, {.lanes = 1, .order = order::none, .stuck_after = 60s});
  shard.daemon.deliver({"1", "2", "3"});
  for (int i = 0; i < 2; ++i) {
    shard.daemon.advance(59s);
    shard.take(0).complete();
    shard.daemon.advance(0s);
  }
  CHECK(shard.daemon.log().empty());
  shard.daemon.advance(59s);
  CHECK(shard.daemon.log().empty());
  shard.daemon.advance(1s);
  REQUIRE(shard.daemon.log().size() == 1);
  CHECK(shard.daemon.log()[0].text ==
        "a handler is stuck: it has had record 3/0 (partition key 'key', attempt 1) for 60000 ms; "
        "the oldest record that is not complete is 3/0 (partition key 'key', attempt 1), delivered "
        "178000 ms ago");
  CHECK(shard.daemon.log()[0].shard_id == "shardId-000000000000");
}

TEST_CASE("a stuck handler is reported at doubling intervals, and never stops the consumption",
          "[processing][completion]") {
  reported_by_test shard({}, {.lanes = 2, .order = order::none, .stuck_after = 60s});
  shard.daemon.deliver({"1"});
  shard.daemon.advance(480s);
  CHECK(shard.daemon.log().size() == 4);  // after 60, 120, 240 and 480 s
  shard.daemon.deliver({"2"});
  shard.take(1).complete();
  shard.daemon.deliver({});
  shard.take(0).complete();
  shard.daemon.deliver({}).advance(1h);
  CHECK(shard.daemon.log().size() == 4);
  CHECK(shard.daemon.persisted() == sequence_position("2"));
}

TEST_CASE("leave_when_stuck ends the session after the report", "[processing][completion]") {
  reported_by_test shard({}, {.stuck_after = 60s, .leave_when_stuck = true});
  shard.daemon.deliver({"1"});
  shard.daemon.advance(61s);
  CHECK(shard.daemon.exit_status() == exit_status::callback_failed);
  CHECK(
      shard.logged("user code between callbacks failed: the handler of record 1/0 (partition key "
                   "'key', attempt 1) "
                   "is stuck (leave_when_stuck)"));
}

TEST_CASE("observers see when a handler gets stuck, and when none is any more",
          "[processing][completion]") {
  const auto seen = std::make_shared<seen_events>();
  reported_by_test shard({}, {}, seen);
  shard.daemon.deliver({"1"}).advance(61s);
  REQUIRE(seen->stuck.size() == 1);
  CHECK(seen->stuck[0] == observer::handlers_stuck{1, sequence_position("1"), "key", 1, 60s, 60s});
  SECTION("it ends") { shard.held.clear(); }
  SECTION("it makes progress") { shard.held.at(0).touch(); }
  shard.daemon.deliver({});
  REQUIRE(seen->stuck.size() == 2);
  CHECK(seen->stuck[1] == observer::handlers_stuck{});
}

TEST_CASE("observers see how long the oldest handler is stuck while others take turns",
          "[processing][completion]") {
  const auto seen = std::make_shared<seen_events>();
  reported_by_test shard({}, {.order = order::none}, seen);
  shard.daemon.deliver({"1"}).advance(30s).deliver({"2"}).advance(60s);
  REQUIRE(seen->stuck.size() == 2);
  CHECK(seen->stuck[1] == observer::handlers_stuck{2, sequence_position("2"), "key", 1, 60s, 90s});
  shard.held.at(0).complete();
  shard.daemon.advance(5s);
  REQUIRE(seen->stuck.size() == 3);
  CHECK(seen->stuck[2] == observer::handlers_stuck{.handlers = 1, .oldest_age = 60s});
}

TEST_CASE("a completion that is reported after its handler threw is of no use",
          "[processing][completion]") {
  std::vector<completion> held;
  int calls = 0;
  parallel_daemon daemon([&](completion done) {
    if (++calls > 1) return done.complete();
    held.push_back(std::move(done));
    throw std::runtime_error("no table");
  });
  daemon.deliver({"1"});
  CHECK(calls == 1);
  held.at(0).complete();
  daemon.deliver({});
  CHECK(daemon.checkpoints().empty());
  daemon.advance(1s);
  CHECK(calls == 2);
  daemon.deliver({});
  CHECK(daemon.persisted() == sequence_position("1"));
}

TEST_CASE("an error may own another completion, wherever it is destroyed",
          "[processing][completion]") {
  struct owner : std::runtime_error {
    explicit owner(std::shared_ptr<completion> taken)
        : runtime_error("no"), held(std::move(taken)) {}
    std::shared_ptr<completion> held;
  };
  const bool throws = GENERATE(false, true);
  const auto lot = std::make_shared<memory_lot>();
  std::shared_ptr<completion> first;
  parallel_daemon daemon(
      [&](completion done) {
        if (!first) {
          first = std::make_shared<completion>(std::move(done));
          return;
        }
        const std::string name(done.record().data());
        done.fail(std::make_exception_ptr(owner(std::exchange(first, nullptr))));
        if (throws) throw std::runtime_error(name);  // takes the place of the owner
      },
      parking(lot, 1, std::nullopt), {.order = order::none});
  daemon.deliver({"1", "2"}).deliver({});
  CHECK(lot->all.size() == 2);
  CHECK(daemon.persisted() == sequence_position("2"));
}

TEST_CASE("a wait for completions that only the test could report is refused",
          "[processing][completion]") {
  reported_by_test shard({}, {.order = order::none, .window_records = 1, .stuck_after = 0s});
  shard.daemon.deliver({"1"});
  CHECK_THROWS_WITH(shard.daemon.deliver({"2"}),
                    "a callback waits for a notification, and nothing can bring it: on this one "
                    "thread it would never return");
}
