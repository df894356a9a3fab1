// SPDX-License-Identifier: Apache-2.0
// parallel() with handlers that return: order, failures, the window and the endings, in the test
// kit's virtual time. tests/unit/processing/lanes_test.cpp has the real threads.
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;
using positions = std::vector<sequence_position>;

}  // namespace

TEST_CASE(
    "process_records returns when the batch is in the window; what is complete is "
    "checkpointed with the next one",
    "[processing][parallel]") {
  strings done;
  parallel_daemon daemon([&](const record& event) { done.emplace_back(event.data()); });
  deliver(daemon, {{"a", "1"}, {"b", "2"}});
  CHECK(done == strings{"1", "2"});
  CHECK(daemon.checkpoints().empty());
  daemon.deliver({});
  CHECK(daemon.checkpoints() == positions{sequence_position("2")});
  deliver(daemon, {{"a", "3"}});
  daemon.end_shard();
  CHECK(daemon.checkpoints().back() == sequence_position("SHARD_END"));
  CHECK(done.size() == 3);
}

namespace {
int calls_of_functions = 0;
void process_record(const record&) { ++calls_of_functions; }
void process_batch(record_batch) { ++calls_of_functions; }
void process_completion(completion done) {
  ++calls_of_functions;
  done.complete();
}
}  // namespace

TEST_CASE("a plain function or a generic lambda can be a handler", "[processing][parallel]") {
  const std::vector<processor_factory> factories{
      process_batch,
      each(process_record),
      parallel(process_record),
      parallel(process_completion),
      [](auto batch) { calls_of_functions += static_cast<int>(batch.front().data().size()); },
      parallel(
          [](const auto& event) { calls_of_functions += static_cast<int>(event.data().size()); })};
  calls_of_functions = 0;
  for (const auto& factory : factories) testing::worker(factory).initialize().deliver({"a"});
  CHECK(calls_of_functions == 6);
}

TEST_CASE(
    "with a key function the order is that of its keys, and log and events have the partition key",
    "[processing][parallel]") {
  strings order_of_calls;
  int failures = 1;
  parallel_daemon daemon(
      [&](const record& event) {
        order_of_calls.emplace_back(event.data());
        if (event.data() == "x1" && failures-- > 0) throw std::runtime_error("no");
      },
      {}, {.key = [](const record& event) { return std::string(event.data(), 0, 1); }});
  deliver(daemon, {{"a", "x1"}, {"a", "y1"}, {"b", "x2"}, {"c", "y2"}});
  daemon.request_shutdown();
  CHECK(order_of_calls == strings{"x1", "y1", "y2", "x1", "x2"});
  CHECK(logged(daemon, "attempt 1 at record 1/0 (partition key 'a') failed"));
  CHECK(daemon.persisted() == sequence_position("4"));
}

TEST_CASE("what a key function throws leaves process_records", "[processing][parallel]") {
  int calls = 0;
  parallel_daemon daemon(
      [&](const record&) { ++calls; }, {},
      {.key = [](const record&) -> std::string { throw std::runtime_error("no key"); }});
  daemon.deliver({"a"});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "no key");
  CHECK(calls == 0);
}

TEST_CASE("stop: in an open callback what is complete is checkpointed first",
          "[processing][parallel]") {
  std::string last;
  parallel_daemon daemon(
      [&](const record& event) {
        last = event.data();
        if (last == "bad") throw std::runtime_error("the table is gone");
      },
      {.max_attempts = 1}, {.lanes = 1, .window_records = 2});
  deliver(daemon, {{"a", "1"}, {"b", "2"}, {"c", "bad"}, {"d", "3"}, {"e", "4"}});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK(logged(daemon, "process_records (5 records, 1/0 to 5/0) failed: the table is gone"));
  CHECK(daemon.persisted() == sequence_position("2"));
  CHECK(last == "bad");  // the next one is in the window too, and is not begun
}

TEST_CASE("a handler that is fenced on an idle shard ends the processing without a further line",
          "[processing][parallel]") {
  int calls = 0;
  parallel_daemon daemon(
      [&](const record&, const shard_context& shard) {
        ++calls;
        shard.sleep_for(5s);
        throw fenced_error("epoch 7, not 6");
      },
      {}, {.lanes = 1});
  deliver(daemon, {{"a", "1"}, {"b", "2"}});
  daemon.advance(6s);
  CHECK(calls == 1);
  CHECK(daemon.stop_requested());
  CHECK(logged(daemon, "ended early: epoch 7, not 6"));
  CHECK_FALSE(daemon.exit_status());
  CHECK(daemon.checkpoints().empty());
  daemon.lose_lease();
  CHECK(daemon.exit_status() == exit_status::ok);
}

TEST_CASE("shutdown_requested waits no longer than drain_timeout, and checkpoints the watermark",
          "[processing][parallel]") {
  parallel_daemon daemon(
      [&](const record& event) {
        if (event.data() == "bad") throw std::runtime_error("no");
      },
      {}, {.drain_timeout = 3s});
  deliver(daemon, {{"a", "1"}, {"b", "bad"}, {"c", "2"}});
  const auto before = daemon.now();
  daemon.request_shutdown();
  CHECK(daemon.now() - before == 3s);
  CHECK(daemon.persisted() == sequence_position("1"));
  CHECK(logged(daemon,
               "shutdown: records that are not complete after 3000 ms: 1, from 2/0 on; they will "
               "be delivered again"));
}

TEST_CASE("shutdown_requested waits without limit for the longest drain_timeout",
          "[processing][parallel]") {
  int failures = 0;
  parallel_daemon daemon(
      [&](const record&) {
        if (failures++ < 100) throw std::runtime_error("no");
      },
      {}, {.drain_timeout = std::chrono::milliseconds::max()});
  deliver(daemon, {{"a", "1"}});
  daemon.request_shutdown();
  CHECK(daemon.persisted() == sequence_position("1"));
}

TEST_CASE("what failure_policy::is_permanent throws ends the session", "[processing][parallel]") {
  parallel_daemon daemon([](const record&) { throw std::runtime_error("no"); },
                         {.is_permanent = [](const std::exception&) -> bool {
                           throw std::runtime_error("not a question that can be answered");
                         }});
  daemon.deliver({"1"});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "not a question that can be answered");
}

TEST_CASE("the last checkpoint has its whole time for retries after a drain that took longer",
          "[processing][parallel]") {
  const run_options options;
  const parallel_options longer{.drain_timeout = options.shutdown_retry_limit + 5s};
  const auto handler = [&](const record& record, const shard_context& shard) {
    const bool ends_late = record.data() == "late";
    shard.sleep_for(ends_late ? longer.drain_timeout - 100ms : std::chrono::hours(1));
  };
  testing::worker daemon(parallel(handler, {}, longer), options);
  test::deliver(daemon.initialize(), {{"1", "late"}, {"2", "never"}});
  daemon.fail_next_checkpoint("ThrottlingException", 4).request_shutdown();
  INFO(daemon);
  CHECK(daemon.attempts().size() == 5);
  CHECK(daemon.persisted() == sequence_position("1"));
}

TEST_CASE("with options that cannot work the processor factory is not valid",
          "[processing][parallel]") {
  const auto refuses = [](const parallel_options& options, const std::string& why) {
    CHECK_THROWS_AS(parallel([](const record&) {}, {}, options).require_valid(),
                    std::invalid_argument);
    CHECK_THROWS_WITH(testing::worker(parallel([](const record&) {}, {}, options)),
                      "parallel_options: " + why);
  };
  refuses({.lanes = 0}, "lanes is 0");
  refuses({.window_records = 0}, "window_records is 0");
  refuses({.window_bytes = 0}, "window_bytes is 0");
  refuses({.stuck_after = -1ms}, "stuck_after is negative");
  refuses({.drain_timeout = -1ms}, "drain_timeout is negative");
  refuses({.order = order::none, .key = [](const record&) { return std::string(); }},
          "a key has no effect with order::none");
}

TEST_CASE("a window that neither fills nor empties is an event once a second at most",
          "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  parallel_daemon daemon([](const record&) {}, {}, {}, seen);
  for (int i = 0; i < 10; ++i) daemon.deliver({"1"});
  REQUIRE(seen->windows.size() == 2);
  CHECK(seen->windows[0].records == 1);
  CHECK(seen->windows[1].records == 0);
  daemon.advance(1s).deliver({"1"});
  CHECK(seen->windows.size() == 4);
}

TEST_CASE("a full window is an event at once", "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  parallel_daemon daemon([](const record&) {}, {}, {.lanes = 1, .window_records = 2}, seen);
  daemon.deliver({"1"}).deliver({"1", "2", "3"});
  REQUIRE(seen->windows.size() > 2);
  CHECK(seen->windows[2].records == 2);
}

TEST_CASE("observers see each attempt, and the window fill and empty", "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  int failures = 0;
  parallel_daemon daemon(
      [&](const record& event, const shard_context& shard) {
        shard.sleep_for(3ms);
        if (event.data() == "bad" && failures++ == 0) throw std::runtime_error("no");
      },
      {}, {.lanes = 1, .window_records = 2}, seen);
  deliver(daemon, {{"a", "1"}, {"b", "bad"}, {"c", "2"}});
  daemon.advance(1s);
  using outcome = observer::record_attempted::outcome;
  REQUIRE(seen->attempts.size() == 4);
  CHECK(seen->attempts[0] ==
        observer::record_attempted{sequence_position("1"), 1, 3ms, outcome::succeeded, {}});
  CHECK(seen->attempts[1] ==
        observer::record_attempted{sequence_position("2"), 1, 3ms, outcome::failed, "no"});
  CHECK(seen->attempts[3].position == sequence_position("2"));
  CHECK(seen->attempts[3].attempt == 2);
  REQUIRE(seen->windows.size() >= 2);
  CHECK(seen->windows.front().records == 2);
  CHECK(seen->windows.back().records == 0);
  CHECK(seen->windows.back().watermark == sequence_position("3"));
}

TEST_CASE("a lot that blocks holds up no other lane, and is reported as stuck",
          "[processing][parallel]") {
  struct slow_lot final : parking_lot {
    void park(const shard_context& shard, std::span<const failed_record> failed) override {
      shard.sleep_for(2h);
      parked += failed.size();
    }
    std::size_t parked = 0;
  };
  const auto which = GENERATE(form::parallel, form::completions);
  CAPTURE(which);
  const auto lot = std::make_shared<slow_lot>();
  strings done;
  testing::worker with(make(which,
                            [&, failures = 1](const record& event, const shard_context&) mutable {
                              if (event.data() == "0") throw permanent_error("malformed");
                              if (event.data() == "7" && failures-- > 0)
                                throw std::runtime_error("no");
                              done.emplace_back(event.data());
                            },
                            parking(lot, 2), {.lanes = 4, .stuck_after = 1min}),
                       prompt());
  std::vector<record::fields> records;
  strings names;
  for (int i = 0; i < 40; ++i) names.push_back(std::to_string(i));
  for (const std::string& name : names) {
    records.emplace_back();
    records.back().data = records.back().partition_key = name;
  }
  with.initialize().deliver_records(records).advance(5min);
  INFO(with);
  CHECK(done.size() == 39);
  CHECK(lot->parked == 0);
  CHECK(count_logged(with, "the parking lot is stuck: it has had record 1/0") == 3);
  CHECK(count_logged(with, "parked after") == 0);
  with.end_shard();
  CHECK(lot->parked == 1);
  CHECK(count_logged(with, "parked after") == 1);
  CHECK(with.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("a policy's function that blocks is reported as stuck", "[processing][parallel]") {
  const auto which = GENERATE(form::parallel, form::completions);
  CAPTURE(which);
  const shard_context* shard = nullptr;
  failure_policy policy;
  policy.is_permanent = [&](const std::exception&) { return !shard->sleep_for(2h); };
  testing::worker with(make(which,
                            [&, failures = 1](const record&, const shard_context& of) mutable {
                              shard = &of;
                              if (failures-- > 0) throw std::runtime_error("no");
                            },
                            policy, {.stuck_after = 1min}),
                       prompt());
  with.initialize().deliver({"1"}).advance(5min);
  INFO(with);
  CHECK(count_logged(with, "the decision on a failure is stuck: it has had record 1/0") == 3);
  with.end_shard();
  CHECK(with.persisted() == sequence_position("SHARD_END"));
}
