// SPDX-License-Identifier: Apache-2.0
// An outage is not a bad record: the circuit of a shard, with every form of processing.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

enum class form {
  each,
  batches,
  batches_with_position,
  batches_with_names,
  parallel,
  completions,
};

#define ALL_FORMS                                                                            \
  GENERATE(form::each, form::batches, form::batches_with_position, form::batches_with_names, \
           form::parallel, form::completions)

/// The form, of a function that processes one record.
processor_factory make(form which, std::function<void(const record&)> process,
                       const failure_policy& policy, const parallel_options& options = {}) {
  switch (which) {
    case form::each:
      return each(process, policy);
    case form::batches:
      return batches(
          [process](const record_batch& batch) {
            for (const record& one : batch) process(one);
          },
          policy);
    case form::batches_with_position:
      return batches(
          [process](const record_batch& batch) {
            for (const record& one : batch) {
              try {
                process(one);
              } catch (...) {
                throw batch_failure(one.position(), std::current_exception());
              }
            }
          },
          policy);
    case form::batches_with_names:
      return batches(
          [process](const record_batch& batch) {
            std::vector<batch_failure::failed> failed;
            for (const record& one : batch) {
              try {
                process(one);
              } catch (const std::runtime_error&) {
                failed.push_back({one.position(), std::current_exception()});
              }
            }
            if (!failed.empty()) throw batch_failure(std::move(failed));
          },
          policy);
    case form::parallel:
      return parallel(process, policy, options);
    case form::completions:
      return parallel(
          [process](completion one) {
            process(one.record());
            one.complete();
          },
          policy, options);
  }
  throw std::logic_error("no such form");
}

/// A store that is away, and comes back after so many calls, or at a time. What it is called with,
/// and when.
struct store {
  std::optional<testing::daemon> daemon{};
  std::shared_ptr<memory_lot> lot = std::make_shared<memory_lot>();
  int calls = 0;
  std::function<bool(const record&)> is_away = [](const record&) { return true; };
  std::function<void(int)> on_call = [](int) {};
  std::vector<shard_context::clock::time_point> times{};
  strings stored{};

  std::function<void(const record&)> handler() {
    return [this](const record& one) {
      ++calls;
      times.push_back(daemon->now());
      on_call(calls);
      if (is_away(one)) throw std::runtime_error("the store is away");
      stored.emplace_back(one.data());
    };
  }
};

failure_policy parking(const std::shared_ptr<memory_lot>& lot, int max_attempts,
                       circuit_breaker breaker = {}) {
  return {
      .max_attempts = max_attempts, .bad_record = bad_record::park, .lot = lot, .breaker = breaker};
}

strings numbered(int count) {
  strings all;
  for (int i = 0; i < count; ++i) all.push_back(std::to_string(i));
  return all;
}

strings sorted(strings all) {
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("restarts during an outage give up at most one record each", "[processing][circuit]") {
  const auto which = ALL_FORMS;
  CAPTURE(static_cast<int>(which));
  store away;
  int crashes = 0;
  away.on_call = [&](int call) {
    if (call % 100 == 0 && crashes < 20) {
      ++crashes;
      away.daemon->crash();
    }
    if (crashes == 20) away.is_away = [](const record&) { return false; };
  };
  away.daemon.emplace(make(which, away.handler(), parking(away.lot, 1)), prompt());
  away.daemon->initialize().deliver(numbered(3000));
  for (int i = 0; i < 20; ++i) {
    if (crashes == i) away.daemon->advance(24h);  // handlers run between callbacks, too
    REQUIRE(crashes == i + 1);
    away.daemon->resume();
  }
  away.daemon->deliver({}).end_shard();
  CHECK(crashes == 20);
  CHECK(away.lot->all.size() <= 20);
  CHECK(away.daemon->persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("an outage gives up no record that is retried without end", "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store away;
  away.is_away = [&](const record&) { return away.calls < 200; };
  away.daemon.emplace(
      make(which, away.handler(), {.bad_record = bad_record::park, .lot = away.lot}), prompt());
  away.daemon->initialize().deliver(numbered(50)).end_shard();
  CHECK(away.lot->all.empty());
  CHECK(sorted(away.stored) == sorted(numbered(50)));
}

TEST_CASE("the log has a line when the circuit opens, and one when it closes",
          "[processing][circuit]") {
  struct seen_events final : observer {
    void on_circuit_changed(const observer::event_source&,
                            const observer::circuit_changed& event) override {
      all.push_back(event);
    }
    std::vector<observer::circuit_changed> all{};
  };
  const auto which = ALL_FORMS;
  const auto events = std::make_shared<seen_events>();
  auto options = prompt();
  options.observers = {events};
  store away;
  away.is_away = [&](const record&) { return away.calls <= 10; };
  away.daemon.emplace(make(which, away.handler(), {.breaker = circuit_breaker{.failures = 4}}),
                      options);
  away.daemon->initialize().deliver({"a"}).end_shard();
  INFO(*away.daemon);
  CHECK(away.stored == strings{"a"});
  CHECK(count_logged(*away.daemon,
                     "the circuit is open: the last 4 attempts failed, so the fault is probably in "
                     "no record. Until one succeeds, none is counted, and one at a time is "
                     "made. The last one, at record 1/0 (partition key 'key'): the store is "
                     "away") == 1);
  CHECK(count_logged(*away.daemon,
                     "the circuit is closed: an attempt succeeded, after 10 that failed") == 1);
  CHECK(events->all ==
        std::vector<observer::circuit_changed>{{true, 4, "the store is away"}, {false, 10, {}}});
}

TEST_CASE("while the circuit is open the waits between attempts grow up to max_wait",
          "[processing][circuit]") {
  const auto which = GENERATE(form::each, form::batches_with_position);
  store away;
  away.is_away = [&](const record&) { return away.calls < 30; };
  away.daemon.emplace(make(which, away.handler(),
                           {.initial_backoff = 1s,
                            .max_backoff = 1s,
                            .breaker = circuit_breaker{.failures = 10, .max_wait = 20s}}));
  away.daemon->initialize().deliver({"a", "b"});
  REQUIRE(away.times.size() == 31);
  auto most = 1s;
  for (std::size_t i = 1; i < 30; ++i) {
    CAPTURE(i);
    const auto wait = away.times[i] - away.times[i - 1];
    if (i > 10) most = std::min(2 * most, 20s);
    CHECK(wait <= most);
    CHECK(wait >= most / 2);
  }
}

TEST_CASE("while the circuit is open one record at a time is tried, however many wait",
          "[processing][circuit]") {
  const auto which = GENERATE(form::parallel, form::completions);
  store away;
  const failure_policy policy{
      .initial_backoff = 10ms, .max_backoff = 100ms, .breaker = circuit_breaker{.max_wait = 10s}};
  away.daemon.emplace(make(which, away.handler(), policy, {.lanes = 8, .order = order::none}),
                      prompt());
  away.daemon->initialize().deliver(numbered(100)).advance(1h);
  INFO(away.calls);
  CHECK(away.calls > 300);  // one in 10 s
  CHECK(away.calls < 1000);
  away.is_away = [](const record&) { return false; };
  away.daemon->advance(10s);  // the next probe, and then all
  CHECK(away.stored.size() == 100);
  away.daemon->end_shard();
  CHECK(away.daemon->persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("keys that fail and open the circuit do not hold up the ones after them",
          "[processing][circuit]") {
  const auto which = GENERATE(form::parallel, form::completions);
  store endpoints;
  endpoints.is_away = [](const record& one) { return one.data() < "60"; };
  endpoints.daemon.emplace(make(which, endpoints.handler(), {}), prompt());
  std::vector<record::fields> records;
  const strings keys = [] {
    strings all;
    for (int i = 10; i < 100; ++i) all.push_back(std::to_string(i));
    return all;
  }();
  for (const std::string& key : keys) {
    records.emplace_back();
    records.back().data = records.back().partition_key = key;
  }
  endpoints.daemon->initialize().deliver_records(records).advance(1min);
  CHECK(sorted(endpoints.stored) == strings(keys.end() - 40, keys.end()));
}

TEST_CASE("an attempt that fails while the circuit is open is not counted",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store away;
  away.is_away = [&](const record&) { return away.calls > 1 && away.calls < 100; };
  away.daemon.emplace(
      make(which, away.handler(), parking(away.lot, 3, {.failures = 5}), {.lanes = 4}), prompt());
  away.daemon->initialize().deliver({"a"}).deliver(numbered(20)).end_shard();
  INFO(*away.daemon);
  CHECK(away.lot->all.size() <= 1);
  CHECK(away.stored.size() + away.lot->all.size() == 21);
}

TEST_CASE("a record that fails alone can use up its attempts, however many",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store bad;
  bad.is_away = [](const record& one) { return one.data() == "bad"; };
  bad.daemon.emplace(make(which, bad.handler(), parking(bad.lot, 50)), prompt());
  bad.daemon->initialize().deliver({"bad", "a"}).end_shard();
  INFO(*bad.daemon);
  REQUIRE(bad.lot->all.size() == 1);
  CHECK(bad.lot->all[0].attempts == 50);
  CHECK(bad.stored == strings{"a"});
  CHECK_FALSE(logged(*bad.daemon, "circuit"));
}

TEST_CASE("a record that fails alone can become too old", "[processing][circuit]") {
  store bad;
  bad.is_away = [](const record& one) { return one.data() == "bad"; };
  bad.daemon.emplace(
      each(bad.handler(), {.max_age = 24h, .bad_record = bad_record::park, .lot = bad.lot}));
  bad.daemon->initialize().deliver({"bad", "a"});
  CHECK(bad.lot->data() == strings{"bad"});
  CHECK(bad.stored == strings{"a"});
}

TEST_CASE("bad records are parked as long as others succeed between them",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store bad;
  bad.is_away = [](const record& one) { return one.data() == "bad"; };
  bad.daemon.emplace(make(which, bad.handler(), parking(bad.lot, 1, {.failures = 3}), {.lanes = 1}),
                     prompt());
  bad.daemon->initialize();
  for (int i = 0; i < 20; ++i) bad.daemon->deliver({"1", "bad", "bad", "2", "bad"});
  bad.daemon->end_shard();
  CHECK(bad.lot->all.size() == 60);
  if (which != form::batches) CHECK(bad.stored.size() == 40);  // that one repeats good records
  CHECK_FALSE(logged(*bad.daemon, "circuit"));
}

TEST_CASE("bad records are parked when others succeeded after they first failed",
          "[processing][circuit]") {
  const auto which = GENERATE(form::batches_with_names, form::parallel, form::completions);
  store bad;
  bad.is_away = [](const record& one) { return one.data() == "bad"; };
  bad.daemon.emplace(make(which, bad.handler(), parking(bad.lot, 5), {.order = order::none}),
                     prompt());
  strings records(500, "good");
  for (std::size_t i = 0; i < 30; ++i) records[10 * i] = "bad";
  bad.daemon->initialize().deliver(records).end_shard();
  INFO(*bad.daemon);
  CHECK(bad.lot->data() == strings(30, "bad"));
  CHECK(bad.stored.size() == 470);
  CHECK_FALSE(logged(*bad.daemon, "circuit"));
}

TEST_CASE("while an open circuit's record cannot be parked, attempts are a backoff apart",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  const auto lot = std::make_shared<memory_lot>();
  lot->refusals = 10;
  std::optional<testing::daemon> with;
  std::vector<shard_context::clock::time_point> times;
  const auto handler = [&](const record&) {
    times.push_back(with->now());
    if (times.size() <= 3) throw std::runtime_error("the store is away");
    throw permanent_error("malformed");
  };
  with.emplace(make(which, handler,
                    {.initial_backoff = 1s,
                     .max_backoff = 1s,
                     .bad_record = bad_record::park,
                     .lot = lot,
                     .breaker = circuit_breaker{.failures = 3}}),
               prompt());
  with->initialize().deliver({"bad"}).end_shard();
  CHECK(lot->all.size() == 1);
  REQUIRE(times.size() == 14);
  for (std::size_t i = 1; i < times.size(); ++i) CHECK(times[i] - times[i - 1] >= 500ms);
}

TEST_CASE("a permanent error is the handler's judgement: it neither opens nor closes the circuit",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  const auto lot = std::make_shared<memory_lot>();
  std::optional<testing::daemon> with;
  int calls = 0;
  const auto handler = [&](const record& one) {
    if (one.data() == "bad") throw permanent_error("malformed");
    if (++calls <= 10) throw std::runtime_error("the store is away");
  };
  with.emplace(
      make(which, handler,
           {.bad_record = bad_record::park, .lot = lot, .breaker = circuit_breaker{.failures = 3}},
           {.lanes = 1}),
      prompt());
  with->initialize().deliver(strings(50, "bad"));
  CHECK(lot->all.size() == 50);
  CHECK_FALSE(logged(*with, "circuit"));
  with->deliver({"a", "bad", "bad"}).end_shard();
  CHECK(lot->all.size() == 52);
  CHECK(count_logged(*with, "the circuit is open") == 1);
  CHECK(count_logged(*with, "the circuit is closed: an attempt succeeded, after ") == 1);
}

TEST_CASE("a requested stop ends the pause of an open circuit", "[processing][circuit]") {
  const auto which = GENERATE(form::each, form::batches_with_position);
  store away;
  away.daemon.emplace(make(which, away.handler(),
                           {.initial_backoff = 10min,
                            .max_backoff = 10min,
                            .breaker = circuit_breaker{.failures = 1, .max_wait = 10min}}),
                      prompt());
  away.is_away = [](const record& one) { return one.data() != "a"; };
  away.daemon->initialize();
  const auto begin = away.daemon->now();
  away.daemon->lose_lease_silently();  // the checkpoint of "a" tells, during the pause
  away.daemon->deliver({"a", "b", "c"});
  CHECK(logged(*away.daemon, "the circuit is open"));
  CHECK(away.daemon->stop_requested());
  CHECK(away.daemon->now() - begin <= 100ms);
  CHECK(away.calls == 2);
}

TEST_CASE("after a drain that an outage has outlasted no probe is waited for",
          "[processing][circuit]") {
  const auto which = GENERATE(form::parallel, form::completions);
  store away;
  away.daemon.emplace(make(which, away.handler(), {.breaker = circuit_breaker{.failures = 3}}),
                      prompt());
  away.daemon->initialize().deliver({"a", "b", "c"}).advance(2min).request_shutdown();
  const int calls = away.calls;
  CHECK_NOTHROW(away.daemon->advance(10min));
  INFO(*away.daemon);
  CHECK(away.calls == calls);
}

TEST_CASE("a policy that stops ends the session at the first bad record, circuit or not",
          "[processing][circuit]") {
  const auto which = GENERATE(form::each, form::batches_with_position);
  store away;
  away.daemon.emplace(make(which, away.handler(), {.max_attempts = 30}), prompt());
  away.daemon->initialize().deliver({"a", "b"});
  CHECK(away.calls == 30);
  CHECK(away.daemon->exit_status() == exit_status::callback_failed);
}

TEST_CASE("without a breaker attempts are counted in an outage, too", "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store away;
  auto policy = parking(away.lot, 2);
  policy.breaker.reset();
  away.daemon.emplace(make(which, away.handler(), policy), prompt());
  away.daemon->initialize().deliver(numbered(100)).end_shard();
  CHECK(away.lot->all.size() == 100);
}

TEST_CASE("a line in the log tells that a record which was retried has succeeded at last",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store away;
  away.is_away = [&](const record&) { return away.calls < 3; };
  away.daemon.emplace(make(which, away.handler(), {}), prompt());
  away.daemon->initialize().deliver({"a"}).deliver({"b"}).end_shard();
  INFO(*away.daemon);
  CHECK(count_logged(*away.daemon,
                     "attempt 1 at record 1/0 (partition key 'key') failed: the store is "
                     "away; the next one is in ") == 1);
  CHECK(count_logged(*away.daemon, "succeeded") == 1);
  CHECK(logged(*away.daemon, "record 1/0 succeeded in attempt 3"));
}

}  // namespace kclxx::test
