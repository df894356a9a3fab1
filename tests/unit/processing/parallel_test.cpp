// SPDX-License-Identifier: Apache-2.0
// parallel() with handlers that return: order, failures, the window and the endings, in the test
// kit's virtual time. tests/unit/processing/lanes_test.cpp has the real threads.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
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
using positions = std::vector<sequence_position>;

}  // namespace

TEST_CASE(
    "process_records returns when the batch is in the window; what is complete is "
    "checkpointed with the next one",
    "[processing][parallel]") {
  strings done;
  parallel_daemon daemon([&](const record& one) { done.emplace_back(one.data()); });
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
void process_completion(completion one) {
  ++calls_of_functions;
  one.complete();
}
}  // namespace

TEST_CASE("a plain function or a generic lambda can be a handler", "[processing][parallel]") {
  const std::vector<processor_factory> factories{
      process_batch,
      each(process_record),
      parallel(process_record),
      parallel(process_completion),
      [](auto batch) { calls_of_functions += static_cast<int>(batch.front().data().size()); },
      parallel([](const auto& one) { calls_of_functions += static_cast<int>(one.data().size()); })};
  calls_of_functions = 0;
  for (const auto& factory : factories) testing::daemon(factory).initialize().deliver({"a"});
  CHECK(calls_of_functions == 6);
}

TEST_CASE("a record that fails keeps later ones of its key waiting, and no other",
          "[processing][parallel]") {
  strings done;
  int failures = 0;
  parallel_daemon daemon(
      [&](const record& one) {
        if (one.data() == "bad" && failures++ < 3) throw std::runtime_error("no");
        done.emplace_back(one.data());
      },
      {.max_attempts = 5}, {.lanes = 2});
  deliver(daemon, {{"a", "bad"}, {"a", "after"}, {"b", "1"}, {"c", "2"}});
  CHECK(done == strings{"1", "2"});
  daemon.deliver({});
  CHECK(daemon.checkpoints().empty());
  daemon.advance(10s);
  CHECK(done == strings{"1", "2", "bad", "after"});
  daemon.deliver({});
  CHECK(daemon.checkpoints() == positions{sequence_position("4")});
}

TEST_CASE(
    "with a key function the order is that of its keys, and log and events have the partition key",
    "[processing][parallel]") {
  strings order_of_calls;
  int failures = 1;
  parallel_daemon daemon(
      [&](const record& one) {
        order_of_calls.emplace_back(one.data());
        if (one.data() == "x1" && failures-- > 0) throw std::runtime_error("no");
      },
      {}, {.key = [](const record& one) { return std::string(one.data(), 0, 1); }});
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

TEST_CASE("with order::none a failing record keeps no other waiting", "[processing][parallel]") {
  strings done;
  parallel_daemon daemon(
      [&](const record& one) {
        if (one.data() == "bad") throw std::runtime_error("no");
        done.emplace_back(one.data());
      },
      {}, {.order = order::none});
  deliver(daemon, {{"a", "bad"}, {"a", "after"}});
  CHECK(done == strings{"after"});
}

TEST_CASE("attempts without end: the others continue until the window is full",
          "[processing][parallel]") {
  std::size_t done = 0;
  bool is_mended = false;
  std::optional<shard_context::clock::time_point> began;
  parallel_daemon daemon(
      [&](const record& one, const shard_context& shard) {
        if (one.data() == "bad" && !is_mended) {
          if (!began) began = shard.now();
          is_mended = shard.now() > *began + 1h;
          throw std::runtime_error("no");
        }
        if (!is_mended) ++done;
      },
      {}, {.window_records = 20});
  deliver(daemon, {{"a", "1"}, {"stuck", "bad"}, {"b", "2"}});
  for (int i = 0; i < 10; ++i) deliver(daemon, {{"a", "x"}, {"stuck", "y"}, {"c", "z"}});
  // All of the window but the key that failed.
  CHECK(done == 14);
  daemon.deliver({});
  CHECK(daemon.persisted() == sequence_position("33"));
}

TEST_CASE("stop: the exception leaves a timer when no callback is open", "[processing][parallel]") {
  parallel_daemon daemon(
      [](const record& one) {
        if (one.data() == "bad") throw std::runtime_error("the table is gone");
      },
      {.max_attempts = 1});
  deliver(daemon, {{"a", "1"}, {"b", "bad"}, {"c", "2"}});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "the table is gone");
  CHECK(logged(daemon, "user code between callbacks failed: the table is gone"));
}

TEST_CASE("stop: in an open callback what is complete is checkpointed first",
          "[processing][parallel]") {
  std::string last;
  parallel_daemon daemon(
      [&](const record& one) {
        last = one.data();
        if (last == "bad") throw std::runtime_error("the table is gone");
      },
      {.max_attempts = 1}, {.lanes = 1, .window_records = 2});
  deliver(daemon, {{"a", "1"}, {"b", "2"}, {"c", "bad"}, {"d", "3"}, {"e", "4"}});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK(logged(daemon, "process_records (5 records, 1/0 to 5/0) failed: the table is gone"));
  CHECK(daemon.persisted() == sequence_position("2"));
  CHECK(last == "bad");  // the next one is in the window too, and is not begun
}

TEST_CASE("stop: of two records that fail for good, the first one's exception ends the session",
          "[processing][parallel]") {
  parallel_daemon daemon(
      [](const record& one, const shard_context& shard) {
        shard.sleep_for(one.data() == "1" ? 20ms : 10ms);
        throw std::runtime_error("record " + std::string(one.data()));
      },
      {.max_attempts = 1}, {.window_records = 2});
  deliver(daemon, {{"a", "1"}, {"b", "2"}, {"c", "3"}});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "record 2");
  CHECK(daemon.checkpoints().empty());
}

TEST_CASE("a callback that waits for records ends with the stop token, and finishes nothing",
          "[processing][parallel]") {
  int calls = 0;
  std::optional<parallel_daemon> daemon;
  daemon.emplace(
      [&](const record&) {
        if (++calls == 3) daemon->end_input();
        throw std::runtime_error("no");
      },
      failure_policy{}, parallel_options{.drain_timeout = 1h});
  deliver(*daemon, {{"a", "1"}});
  const auto begin = daemon->now();
  SECTION("shard_ended") { daemon->end_shard(); }
  SECTION("shutdown_requested") { daemon->request_shutdown(); }
  CHECK(daemon->exit_status() == exit_status::daemon_gone);
  CHECK(daemon->now() - begin < 1h);
  CHECK(daemon->checkpoints().empty());
  CHECK_FALSE(logged(*daemon, "records that are not complete after"));
}

TEST_CASE("a callback that waits for room returns as soon as there is room",
          "[processing][parallel]") {
  std::vector<shard_context::clock::time_point> began;
  parallel_daemon daemon(
      [&](const record&, const shard_context& shard) {
        began.push_back(shard.now());
        shard.sleep_for(10ms);
      },
      {}, {.lanes = 1, .window_records = 1});
  daemon.deliver({"1", "2", "3"});
  REQUIRE(began.size() == 3);
  CHECK(began[1] - began[0] == 10ms);
  CHECK(began[2] - began[1] == 10ms);
}

TEST_CASE("the wait of a failure for the handlers that run ends when the last one fails",
          "[processing][parallel]") {
  parallel_daemon daemon(
      [](const record& one, const shard_context& shard) {
        if (one.data() == "slow") shard.sleep_for(3s);
        throw permanent_error(std::string(one.data()));
      },
      {}, {.lanes = 2, .order = order::none, .window_records = 2});
  const auto begin = daemon.now();
  daemon.deliver({"slow", "quick", "waits for room"});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "quick");
  CHECK(daemon.now() - begin == 3s);
}

TEST_CASE("a failure is not waited with when no handler runs any more", "[processing][parallel]") {
  parallel_daemon daemon([](const record&) { throw std::runtime_error("no"); },
                         {.max_attempts = 1});
  const auto before = daemon.now();
  daemon.deliver({"1"});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK(daemon.now() == before);
}

TEST_CASE("a lost lease that a handler reports ends the processing, and is no failure",
          "[processing][parallel]") {
  int calls = 0;
  const auto lot = std::make_shared<memory_lot>();
  parallel_daemon daemon(
      [&](const record&) {
        ++calls;
        throw checkpoint_error(make_error_code(errc::lease_lost));
      },
      {.bad_record = bad_record::park, .lot = lot}, {.lanes = 1});
  deliver(daemon, {{"a", "1"}, {"b", "2"}});
  CHECK(calls == 1);
  CHECK_FALSE(daemon.exit_status());
  daemon.deliver({"3"});
  CHECK(daemon.stop_requested());
  CHECK_FALSE(daemon.exit_status());
  CHECK(calls == 1);
  CHECK(lot->all.empty());
  daemon.lose_lease();
  CHECK(daemon.exit_status() == exit_status::ok);
  CHECK(daemon.checkpoints().empty());
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

TEST_CASE("end of input while a callback waits for room: it returns", "[processing][parallel]") {
  int calls = 0;
  std::optional<parallel_daemon> daemon;
  daemon.emplace(
      [&](const record&) {
        CHECK_FALSE(daemon->stop_requested());
        if (++calls == 40) daemon->end_input();
        throw std::runtime_error("no");
      },
      failure_policy{.breaker = {}}, parallel_options{.window_records = 4});
  const auto before = daemon->now();
  deliver(*daemon, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}});
  CHECK(daemon->exit_status() == exit_status::daemon_gone);
  CHECK(daemon->now() - before < 2min);  // the waits of ten attempts, and none after the stop
}

TEST_CASE("when drain_timeout has passed, no further record is begun", "[processing][parallel]") {
  std::vector<completion> held;
  parallel_daemon daemon([&](completion one) { held.push_back(std::move(one)); }, {},
                         {.lanes = 1, .order = order::none, .drain_timeout = 5s});
  deliver(daemon, {{"a", "1"}, {"b", "2"}});
  daemon.request_shutdown();
  CHECK(held.size() == 1);
  held.front().complete();
  daemon.advance(10s);
  CHECK(held.size() == 1);
}

TEST_CASE("a failure during the drain does not lengthen it", "[processing][parallel]") {
  std::vector<completion> held;
  parallel_daemon daemon(
      [&](completion one) {
        if (one.record().data() == "long") {
          held.push_back(std::move(one));
        } else if (one.attempt() == 1) {
          one.fail("no");
        } else {
          one.fail(std::make_exception_ptr(permanent_error("no")));
        }
      },
      {.initial_backoff = 4s, .max_backoff = 4s}, {.drain_timeout = 5s});
  deliver(daemon, {{"a", "bad"}, {"b", "long"}});
  const auto before = daemon.now();
  daemon.request_shutdown();
  CHECK(daemon.now() - before == 5s);
  CHECK(daemon.exit_status() == exit_status::callback_failed);
}

TEST_CASE("a retry ends with the stop token", "[processing][parallel]") {
  int calls = 0;
  parallel_daemon daemon(
      [&](const record&) {
        ++calls;
        throw std::runtime_error("no");
      },
      {}, {.window_records = 1});
  deliver(daemon, {{"a", "1"}});
  daemon.advance(1s);
  const int before = calls;
  CHECK(before > 1);
  const auto time = daemon.now();
  daemon.lose_lease();
  daemon.advance(60s);
  CHECK(calls == before);
  CHECK(daemon.now() - time == 60s);
}

TEST_CASE("shard_ended waits for stuck work: the end is not checkpointed before it is complete",
          "[processing][parallel]") {
  strings events;
  const testing::daemon* seen = nullptr;
  parallel_daemon daemon([&](const record& one, const shard_context& shard) {
    if (one.data() == "slow") shard.sleep_for(20min);
    if (one.data() == "bad" && shard.now().time_since_epoch() < 20h) throw std::runtime_error("no");
    CHECK(seen->persisted() != sequence_position("SHARD_END"));
    events.emplace_back(one.data());
  });
  seen = &daemon;
  deliver(daemon, {{"a", "slow"}, {"b", "bad"}, {"c", "1"}});
  daemon.end_shard();
  CHECK(events.size() == 3);
  CHECK(daemon.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("shutdown_requested waits for what is in the window, and checkpoints it",
          "[processing][parallel]") {
  int failures = 0;
  parallel_daemon daemon([&](const record& one) {
    if (one.data() == "bad" && failures++ < 2) throw std::runtime_error("no");
  });
  deliver(daemon, {{"a", "1"}, {"b", "bad"}});
  daemon.request_shutdown();
  CHECK(daemon.persisted() == sequence_position("2"));
  CHECK(failures == 3);
}

TEST_CASE("shutdown_requested waits no longer than drain_timeout, and checkpoints the watermark",
          "[processing][parallel]") {
  parallel_daemon daemon(
      [&](const record& one) {
        if (one.data() == "bad") throw std::runtime_error("no");
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

TEST_CASE("a checkpoint of the watermark costs at most one line for each interval",
          "[processing][parallel]") {
  testing::daemon daemon(
      parallel([](const record&, const shard_context& shard) { shard.sleep_for(10ms); }),
      {.checkpoint_interval = 5s});
  daemon.initialize();
  for (int i = 0; i < 100; ++i) daemon.deliver({"1", "2", "3", "4", "5"}).advance(51ms);
  // 500 records of 10 ms, one key.
  CHECK(daemon.attempts().size() == 1);
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

TEST_CASE("options that cannot work are refused where the processor factory is made",
          "[processing][parallel]") {
  const auto refuses = [](const parallel_options& options, const std::string& why) {
    CHECK_THROWS_AS(parallel([](const record&) {}, {}, options), std::invalid_argument);
    CHECK_THROWS_WITH(parallel([](const record&) {}, {}, options), "parallel_options: " + why);
  };
  refuses({.lanes = 0}, "lanes is 0");
  refuses({.window_records = 0}, "window_records is 0");
  refuses({.window_bytes = 0}, "window_bytes is 0");
  refuses({.stuck_after = -1ms}, "stuck_after is negative");
  refuses({.drain_timeout = -1ms}, "drain_timeout is negative");
  refuses({.order = order::none, .key = [](const record&) { return std::string(); }},
          "a key has no effect with order::none");
}

TEST_CASE("a drain_timeout of 0 is accepted", "[processing][parallel]") {
  const parallel_daemon daemon([](const record&) {}, {}, {.drain_timeout = 0ms});
  CHECK(daemon.exit_status() == std::nullopt);
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

TEST_CASE("neither a retry nor a completion is a further event within the second",
          "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  bool is_retry = false;
  const auto fail_once = [&](const record&) {
    if (!std::exchange(is_retry, true)) throw std::runtime_error("no");
  };
  const auto complete = [](completion one) { one.complete(); };
  SECTION("a retry") {
    parallel_daemon daemon(fail_once, {}, {}, seen);
    daemon.deliver({"1"}).advance(900ms);
    CHECK(is_retry);
  }
  SECTION("a completion") {
    parallel_daemon daemon(complete, {}, {}, seen);
    daemon.deliver({"1"}).deliver({"2"}).deliver({"3"});
  }
  REQUIRE(seen->windows.size() == 2);
  CHECK(seen->windows[0].records == 1);
  CHECK(seen->windows[1].records == 0);
}

TEST_CASE("a completion after the lost lease is no event", "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  std::optional<completion> held;
  parallel_daemon daemon([&](completion one) { held.emplace(std::move(one)); }, {}, {}, seen);
  daemon.deliver({"1"}).lose_lease();
  const auto before = seen->windows.size();
  held->complete();
  daemon.advance(1s);
  CHECK(seen->windows.size() == before);
}

TEST_CASE("a full window is an event at once", "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  parallel_daemon daemon([](const record&) {}, {}, {.lanes = 1, .window_records = 2}, seen);
  daemon.deliver({"1"}).deliver({"1", "2", "3"});
  REQUIRE(seen->windows.size() > 2);
  CHECK(seen->windows[2].records == 2);
}

TEST_CASE("a window that completions empty, or that a handler keeps, is an event",
          "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  std::vector<completion> held;
  parallel_daemon daemon([&](completion one) { held.push_back(std::move(one)); }, {},
                         {.order = order::none}, seen);
  daemon.deliver({"1", "2"});
  CHECK(seen->windows.back().records == 2);
  held.at(0).complete();
  daemon.advance(60s);  // the other one is stuck
  CHECK(seen->windows.back().records == 1);
  held.at(1).complete();
  daemon.advance(0ms);
  CHECK(seen->windows.back().records == 0);
}

TEST_CASE("no handler counts as stuck when the stuck one has failed for good",
          "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  std::optional<completion> held;
  parallel_daemon daemon([&](completion one) { held.emplace(std::move(one)); }, {.max_attempts = 1},
                         {}, seen);
  daemon.deliver({"1"}).advance(60s);
  REQUIRE(seen->stuck.size() == 1);
  CHECK(seen->stuck[0].handlers == 1);
  held->fail("no");
  daemon.advance(0ms);
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  REQUIRE(seen->stuck.size() == 2);
  CHECK(seen->stuck[1].handlers == 0);
}

TEST_CASE("observers see each attempt, and the window fill and empty", "[processing][parallel]") {
  const auto seen = std::make_shared<seen_events>();
  int failures = 0;
  parallel_daemon daemon(
      [&](const record& one, const shard_context& shard) {
        shard.sleep_for(3ms);
        if (one.data() == "bad" && failures++ == 0) throw std::runtime_error("no");
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
  testing::daemon with(make(which,
                            [&, failures = 1](const record& one, const shard_context&) mutable {
                              if (one.data() == "0") throw permanent_error("malformed");
                              if (one.data() == "7" && failures-- > 0)
                                throw std::runtime_error("no");
                              done.emplace_back(one.data());
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
  testing::daemon with(make(which,
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

TEST_CASE("records that a daemon delivers again are left out, and the watermark does not fall",
          "[processing][parallel][P69]") {
  const auto which = GENERATE(form::parallel, form::completions);
  const auto ordering = GENERATE(order::key, order::none);
  strings done;
  const auto seen = std::make_shared<seen_events>();
  const auto forward =
      make(which, [&](const record& one, const shard_context&) { done.emplace_back(one.data()); },
           {}, {.order = ordering});
  struct repeating final : record_processor {
    void process_records(record_batch batch, const checkpointer& with) override {
      inner->process_records(batch, with);
      inner->process_records(batch, with);
      inner->process_records(batch.slice(0, 1), with);
    }
    void shutdown_requested(const checkpointer& with) override { inner->shutdown_requested(with); }
    std::unique_ptr<record_processor> inner;
  };
  const auto make_repeating = [&](const shard_context& shard) {
    auto made = std::make_unique<repeating>();
    made->inner = forward(shard);
    return made;
  };
  testing::daemon with(make_repeating, prompt(seen));
  with.initialize().deliver({"1", "2", "3"}).deliver({"4"}).request_shutdown();
  CHECK(done == strings{"1", "2", "3", "4"});
  CHECK(with.persisted() == sequence_position("4"));
  CHECK(std::is_sorted(with.checkpoints().begin(), with.checkpoints().end()));
}
