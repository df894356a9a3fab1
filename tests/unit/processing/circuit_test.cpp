// SPDX-License-Identifier: Apache-2.0
// An outage is not a bad record: the circuit of a shard, with every form of processing.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

#define ALL_FORMS                                                                            \
  GENERATE(form::each, form::batches, form::batches_with_position, form::batches_with_names, \
           form::parallel, form::completions)

/// A store that is away, and comes back after so many calls, or at a time. What it is called with,
/// and when.
struct store {
  std::optional<testing::worker> daemon{};
  std::shared_ptr<memory_lot> lot = std::make_shared<memory_lot>();
  int calls = 0;
  std::function<bool(const record&)> is_away = [](const record&) { return true; };
  bool says_so = false;
  std::vector<shard_context::clock::time_point> times{};
  strings stored{};

  record_handler::of_shard handler() {
    return [this](const record& event, const shard_context&) {
      ++calls;
      times.push_back(daemon->now());
      if (is_away(event) && says_so) throw outage_error("the store is away");
      if (is_away(event)) throw std::runtime_error("the store is away");
      stored.emplace_back(event.data());
    };
  }
  /// A shard that is processed in this form.
  testing::worker& start(form which, const failure_policy& policy,
                         const parallel_options& options = {},
                         std::shared_ptr<observer> watching = nullptr) {
    daemon.emplace(make(which, handler(), policy, options), prompt(std::move(watching)));
    return daemon->initialize();
  }
};

strings numbered(int count) {
  strings result;
  for (int i = 0; i < count; ++i) result.push_back(std::to_string(i));
  return result;
}

strings sorted(strings unsorted) {
  std::sort(unsorted.begin(), unsorted.end());
  return unsorted;
}

}  // namespace

TEST_CASE("an outage that the program declares makes no record bad", "[processing][circuit]") {
  const auto which = ALL_FORMS;
  const int attempts = GENERATE(1, 2, 3, 5);
  const bool has_breaker = GENERATE(true, false);
  const bool is_predicate = GENERATE(false, true);
  CAPTURE(static_cast<int>(which), attempts, has_breaker, is_predicate);
  store away;
  away.is_away = [&](const record&) { return away.calls > 1 && away.calls < 200; };
  away.says_so = !is_predicate;
  failure_policy policy = parking(away.lot, attempts);
  policy.max_age = 24h;
  if (!has_breaker) policy.breaker.reset();
  if (is_predicate) {
    policy.is_outage = [](const std::exception& error) {
      return error.what() == std::string("the store is away");
    };
    policy.is_permanent = [](const std::exception&) { return true; };
  }
  std::vector<record::fields> records;
  const strings names = numbered(50);
  for (const std::string& name : names) {
    records.emplace_back();
    records.back().data = records.back().partition_key = name;
    records.back().approximate_arrival_timestamp = 1s;
  }
  away.start(which, policy, {.lanes = 4}).deliver_records(records).advance(10h);
  away.daemon->end_shard();
  INFO(*away.daemon);
  CHECK(away.lot->all.empty());
  strings stored = sorted(away.stored);  // `batches` repeats good records
  stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
  CHECK(stored == sorted(names));
  CHECK(logged(*away.daemon, "the circuit is open: the program reports an outage. "));
  CHECK(count_logged(*away.daemon, "the circuit is closed") > 0);
}

TEST_CASE("a declared outage opens the circuit at once, with its waits", "[processing][circuit]") {
  const auto which = ALL_FORMS;
  const auto events = std::make_shared<seen_events>();
  store away;
  away.says_so = true;
  away.is_away = [&](const record&) { return away.calls <= 10; };
  away.start(which, {.initial_backoff = 1s, .max_backoff = 1s, .breaker = std::nullopt}, {}, events)
      .deliver({"a"})
      .end_shard();
  CHECK(away.stored == strings{"a"});
  CHECK(events->circuits ==
        std::vector<observer::circuit_changed>{{true, 1, "the store is away"}, {false, 10, {}}});
  REQUIRE(away.times.size() == 11);
  CHECK(away.times[10] - away.times[9] >= 15s);
}

TEST_CASE("after a declared outage a batch comes again as it was", "[processing][circuit]") {
  std::vector<strings> seen;
  const bool is_named = GENERATE(false, true);
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(batches(
                           [&](const record_batch& batch) {
                             seen.push_back(payloads_of(batch));
                             if (seen.size() == 4) return;
                             const outage_error away("the store is away");
                             if (!is_named) throw away;
                             throw batch_failure({{batch[seen.size() == 1 ? 1 : 0].position(),
                                                   std::make_exception_ptr(away)}});
                           },
                           parking(lot, 1)),
                       prompt());
  with.initialize().deliver({"a", "b", "c"}).end_shard();
  INFO(with);
  const strings again = is_named ? strings{"b"} : strings{"a", "b", "c"};
  CHECK(seen == std::vector<strings>{{"a", "b", "c"}, again, again, again});
  CHECK(lot->all.empty());
  CHECK(with.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE(
    "an outage that nobody declares makes as many records bad as fail before the circuit opens: "
    "attempts count for it, in parallel records",
    "[processing][circuit]") {
  const auto which = GENERATE(form::each, form::batches_with_position, form::parallel);
  const int attempts = GENERATE(1, 2, 3, 5);
  store away;
  away.is_away = [&](const record&) { return away.calls > 1 && away.calls < 200; };
  away.start(which, parking(away.lot, attempts)).deliver(numbered(50)).end_shard();
  CHECK(int(away.lot->all.size()) == 19 / (which == form::parallel ? 1 : attempts));
  CHECK(away.stored.size() + away.lot->all.size() == 50);
}

TEST_CASE("the log has a line when the circuit opens, and one when it closes",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  const bool is_parallel = which == form::parallel || which == form::completions;
  const auto events = std::make_shared<seen_events>();
  store away;
  away.is_away = [&](const record&) { return away.calls <= 10; };
  // In parallel the handler fails for four records, else four times for the first one.
  const strings records = is_parallel ? numbered(4) : strings{"0"};
  away.start(which, {.breaker = circuit_breaker{.failures = 4}}, {.order = order::none}, events)
      .deliver(records)
      .end_shard();
  INFO(*away.daemon);
  CHECK(sorted(away.stored) == records);
  const std::string last = std::to_string(records.size());
  CHECK(count_logged(*away.daemon,
                     std::string("the circuit is open: the last 4 ") +
                         (is_parallel ? "records" : "attempts") +
                         " failed, so the fault is probably in no record. Until an attempt "
                         "succeeds, none is counted, and one at a time is made. The last one, at "
                         "record " +
                         last + "/0 (partition key 'key'): the store is away") == 1);
  CHECK(count_logged(*away.daemon,
                     "the circuit is closed: an attempt succeeded, after 10 that failed") == 1);
  CHECK(events->circuits ==
        std::vector<observer::circuit_changed>{{true, 4, "the store is away"}, {false, 10, {}}});
}

TEST_CASE("while the circuit is open the waits between attempts grow up to max_wait",
          "[processing][circuit]") {
  const auto which = GENERATE(form::each, form::batches_with_position);
  store away;
  away.is_away = [&](const record&) { return away.calls < 30; };
  away.start(which, {.initial_backoff = 1s,
                     .max_backoff = 1s,
                     .breaker = circuit_breaker{.failures = 10, .max_wait = 20s}})
      .deliver({"a", "b"});
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
  away.start(which, policy, {.lanes = 8, .order = order::none}).deliver(numbered(100)).advance(1h);
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
  endpoints.is_away = [](const record& event) { return event.data() < "60"; };
  std::vector<record::fields> records;
  const strings keys = [] {
    strings result;
    for (int i = 10; i < 100; ++i) result.push_back(std::to_string(i));
    return result;
  }();
  for (const std::string& key : keys) {
    records.emplace_back();
    records.back().data = records.back().partition_key = key;
  }
  endpoints.start(which, {}).deliver_records(records).advance(2h);
  CHECK(sorted(endpoints.stored) == strings(keys.end() - 40, keys.end()));
}

TEST_CASE("in parallel a record counts once for the circuit, however often it fails",
          "[processing][circuit]") {
  const auto which = GENERATE(form::parallel, form::completions);
  const auto bad_keys = GENERATE(1U, 10U, 19U);
  CAPTURE(bad_keys);
  store bad;
  bad.is_away = [](const record& event) { return event.data() == "bad"; };
  auto& daemon = bad.start(which, {});
  const strings keys = numbered(20);
  for (const std::string& key : strings(keys.begin(), keys.begin() + bad_keys)) {
    test::deliver(daemon, {{key, "bad"}, {key, "bad"}});
  }
  for (std::size_t hour = 1; hour <= 3; ++hour) {
    daemon.advance(1h);
    CHECK(bad.calls > static_cast<int>(hour * 100));
    test::deliver(daemon, {{"good", "good"}});
    CHECK(bad.stored.size() == hour);  // at once
  }
  CHECK_FALSE(logged(daemon, "circuit"));
}

TEST_CASE(
    "while the circuit is open a new record is the next probe, and failed ones are without it",
    "[processing][circuit]") {
  const auto which = GENERATE(form::parallel, form::completions);
  store bad;
  bad.is_away = [](const record& event) { return event.data() == "bad"; };
  auto& daemon = bad.start(which, {}, {.order = order::none});
  daemon.deliver(strings(30, "bad"));
  int before = bad.calls;
  daemon.advance(1h);
  CHECK(bad.calls >= before + 120);  // one in 30 s at least
  before = bad.calls;
  daemon.deliver({"bad", "bad", "bad", "good"});
  while (bad.calls < before + 4) daemon.advance(1s);
  CHECK(bad.stored == strings{"good"});
  CHECK(count_logged(daemon, "the circuit is open") == 1);
  CHECK(count_logged(daemon, "the circuit is closed") == 1);
}

TEST_CASE("bad records are parked when others succeeded after they first failed",
          "[processing][circuit]") {
  const auto which = GENERATE(form::batches_with_names, form::parallel, form::completions);
  store bad;
  bad.is_away = [](const record& event) { return event.data() == "bad"; };
  strings records(500, "good");
  for (std::size_t i = 0; i < 30; ++i) records[10 * i] = "bad";
  bad.start(which, parking(bad.lot, 5), {.order = order::none}).deliver(records).end_shard();
  INFO(*bad.daemon);
  CHECK(bad.lot->data() == strings(30, "bad"));
  CHECK(bad.stored.size() == 470);
  CHECK_FALSE(logged(*bad.daemon, "circuit"));
}

TEST_CASE("while an open circuit's record cannot be parked, attempts are a backoff apart",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store bad;
  bad.lot->refusals = 10;
  bad.is_away = [&](const record&) {
    if (bad.calls > 3) throw permanent_error("malformed");
    return true;
  };
  bad.start(which, {.initial_backoff = 1s,
                    .max_backoff = 1s,
                    .bad_record = bad_record::park,
                    .lot = bad.lot,
                    .breaker = circuit_breaker{.failures = 3}})
      .deliver({"bad"})
      .end_shard();
  CHECK(bad.lot->all.size() == 1);
  REQUIRE(bad.times.size() == 14);
  for (std::size_t i = 1; i < 14; ++i) CHECK(bad.times[i] - bad.times[i - 1] >= 500ms);
}

TEST_CASE("a permanent error is the handler's judgement: it neither opens nor closes the circuit",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store bad;
  int failures = 10;
  bad.is_away = [&](const record& event) {
    if (event.data() == "bad") throw permanent_error("malformed");
    return failures-- > 0;
  };
  auto& daemon = bad.start(
      which,
      {.bad_record = bad_record::park, .lot = bad.lot, .breaker = circuit_breaker{.failures = 3}},
      {.lanes = 1, .order = order::none});
  daemon.deliver(strings(50, "bad"));
  CHECK(bad.lot->all.size() == 50);
  CHECK_FALSE(logged(daemon, "circuit"));
  daemon.deliver({"a", "b", "c", "bad", "bad"}).end_shard();
  CHECK(bad.lot->all.size() == 52);
  CHECK(count_logged(daemon, "the circuit is open") == 1);
  CHECK(count_logged(daemon, "the circuit is closed: an attempt succeeded, after ") == 1);
}

TEST_CASE("without a breaker attempts are counted in an outage, too", "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store away;
  away.start(which, parking(away.lot, 2, std::nullopt)).deliver(numbered(100)).end_shard();
  CHECK(away.lot->all.size() == 100);
}

TEST_CASE("a line in the log tells that a record which was retried has succeeded at last",
          "[processing][circuit]") {
  const auto which = ALL_FORMS;
  store away;
  away.is_away = [&](const record&) { return away.calls < 3; };
  away.start(which, {}).deliver({"a"}).deliver({"b"}).end_shard();
  INFO(*away.daemon);
  CHECK(count_logged(*away.daemon,
                     "attempt 1 at record 1/0 (partition key 'key') failed: the store is "
                     "away; the next one is in ") == 1);
  CHECK(count_logged(*away.daemon, "succeeded") == 1);
  CHECK(logged(*away.daemon, "record 1/0 succeeded in attempt 3"));
}

}  // namespace kclxx::test
