// SPDX-License-Identifier: Apache-2.0
// What runners do next, when the callbacks' thread looks again, and when observers see the window.
#include "processing/work_list.hpp"

#include <stdexcept>

#include "processing/wake_ups.hpp"
#include "processing/window_reports.hpp"
#include "support/catch.hpp"
#include "unit/processing/owned_batch.hpp"

namespace {

using kclxx::order;
using kclxx::processing::message_of;
using kclxx::processing::wake_ups;
using kclxx::processing::window_reports;
using kclxx::processing::work_list;
using kclxx::test::owned_batch;
using namespace std::chrono_literals;

const work_list::time_point start_time{};

/// Four records of two keys.
struct filled_work_list : work_list {
  filled_work_list(std::size_t lanes, bool is_async, kclxx::order in = order::none)
      : work_list({.lanes = lanes, .order = in}, is_async) {
    queue().admit(owned_batch({{"a", "1"}, {"b", "2"}, {"a", "3"}, {"b", "4"}}, 1).get(), 0,
                  start_time);
  }
};

std::exception_ptr error(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

TEST_CASE("runners of a plain handler are as many as records are ready", "[processing]") {
  filled_work_list by_key(8, false, order::key);
  CHECK(by_key.runners_wanted(0) == 2);
  filled_work_list list(3, false);
  CHECK(list.runners_wanted(0) == 3);
  CHECK(list.runners_wanted(2) == 1);
  for (int i = 0; i < 3; ++i) CHECK(list.take(start_time));
  CHECK_FALSE(list.take(start_time));
}

TEST_CASE(
    "an async handler has one runner, while it can start one or a failure is to be decided on",
    "[processing]") {
  filled_work_list list(1, true);
  CHECK(list.runners_wanted(0) == 1);
  CHECK(list.runners_wanted(1) == 0);
  const auto first = list.take(start_time);
  CHECK(list.runners_wanted(0) == 0);
  list.fail(first->ticket, error("no"), start_time + 1s);
  CHECK(list.runners_wanted(0) == 1);
  const auto failed = list.take(start_time);
  CHECK(message_of(failed->failed) == "no");
  CHECK(failed->ended == start_time + 1s);
}

TEST_CASE("a retried record counts its attempts, until it is complete", "[processing]") {
  filled_work_list list(2, false);
  const auto first = list.take(start_time);
  CHECK(first->attempt == 1);
  auto attempts = list.begin_decision(first->ticket);
  CHECK(list.running(first->ticket) == nullptr);
  ++attempts.count;
  list.retry(first->ticket, attempts, start_time + 1s);
  list.queue().make_due_ready(start_time + 1s);
  const auto second = list.take(start_time);
  CHECK(second->record == first->record);
  CHECK(second->attempt == 2);
  CHECK(list.begin_decision(second->ticket).count == 1);
  list.complete(second->ticket);
}

TEST_CASE("what a handler throws takes the place of its dropped completion, not of a success",
          "[processing]") {
  filled_work_list list(2, true);
  const auto dropped = list.take(start_time);
  const auto complete = list.take(start_time);
  list.fail(dropped->ticket, error("dropped"), start_time);
  auto thrown = error("thrown");
  CHECK(list.fail_thrown(*dropped, thrown, start_time));
  CHECK(message_of(thrown) == "dropped");  // for the caller to destroy, without a lock
  CHECK(message_of(list.take(start_time)->failed) == "thrown");
  list.complete(complete->ticket);
  CHECK_FALSE(list.fail_thrown(*complete, thrown, start_time));
}

TEST_CASE("retries have at most half of the lanes while there are new records", "[processing]") {
  filled_work_list list(2, false);
  const auto fail = [&] {
    const auto one = list.take(start_time);
    auto attempts = list.begin_decision(one->ticket);
    ++attempts.count;
    list.retry(one->ticket, attempts, start_time);
  };
  fail();
  fail();
  list.queue().make_due_ready(start_time);
  CHECK(list.take(start_time)->attempt == 2);
  const auto second = list.take(start_time);
  CHECK(second->attempt == 1);
  list.complete(second->ticket);
  CHECK(list.take(start_time)->attempt == 1);
}

TEST_CASE("on a single lane, too, every second attempt can be a retry", "[processing]") {
  filled_work_list list(1, false);
  const auto first = list.take(start_time);
  list.retry(first->ticket, list.begin_decision(first->ticket), start_time);
  list.queue().make_due_ready(start_time);
  CHECK(list.take(start_time)->record == first->record);
}

TEST_CASE("every second attempt is a new record's, however many lanes are taken", "[processing]") {
  filled_work_list list(4, false);
  const auto is_retry = [&] {
    const auto one = list.take(start_time);
    auto attempts = list.begin_decision(one->ticket);
    ++attempts.count;
    list.retry(one->ticket, attempts, start_time);
    return one->attempt > 1;
  };
  CHECK_FALSE(is_retry());
  list.queue().make_due_ready(start_time);
  CHECK(is_retry());
  list.queue().make_due_ready(start_time);
  CHECK_FALSE(is_retry());
  list.queue().make_due_ready(start_time);
  CHECK(is_retry());
}

TEST_CASE("while the circuit is open the oldest new record and a failed one are tried in turn",
          "[processing]") {
  filled_work_list list(4, false);
  const auto failed = [&](kclxx::processing::circuit::probe_id probe) {
    const auto one = list.take(start_time, probe);
    auto attempts = list.begin_decision(one->ticket);
    ++attempts.count;
    list.retry(one->ticket, attempts, start_time);
    list.queue().make_due_ready(start_time);
    return one->record->data();
  };
  CHECK(failed(0) == "1");
  CHECK(failed(1) == "2");
  CHECK(failed(2) == "1");
  CHECK(failed(3) == "3");
  CHECK(failed(4) == "2");
  CHECK(failed(5) == "4");
}

TEST_CASE("a batch and a failure that are no longer needed are destroyed by the caller",
          "[processing]") {
  filled_work_list list(4, true);
  const auto first = list.take(start_time);
  list.fail(list.take(start_time)->ticket, error("no"), start_time);
  list.complete(first->ticket);
  CHECK(list.take_dropped().batches.empty());
  list.clear();
  const auto dropped = list.take_dropped();
  CHECK(dropped.batches.size() == 1);
  CHECK(dropped.failed.size() == 1);
}

TEST_CASE("a report names the stuck record and the oldest", "[processing]") {
  filled_work_list list(2, false);
  list.complete(list.take(start_time)->ticket);
  const auto one = list.take(start_time);
  CHECK_FALSE(list.report(one->ticket, start_time + 5s));
  REQUIRE(list.handlers().take_due(start_time + 60s).size() == 1);
  const auto report = list.report(one->ticket, start_time + 60s);
  CHECK(
      report->text() ==
      "a handler is stuck: it has had record 2/0 (partition key 'b', attempt 1) for 60000 ms; the "
      "oldest record that is not complete is 2/0 (partition key 'b', attempt 1), delivered 60000 "
      "ms ago");
  list.handlers().touch(one->ticket, start_time + 61s);
  CHECK_FALSE(list.report(one->ticket, start_time + 61s));
  list.remove(one->ticket);
  CHECK_FALSE(list.report(one->ticket, start_time));
}

TEST_CASE("a waiting callback is notified once when it has to look before its deadline",
          "[processing]") {
  wake_ups wakes;
  wakes.set_open(true);
  wake_ups::to_do then;
  wakes.by(start_time, then);  // it does not wait
  wakes.begin_wait(start_time + 10s);
  wakes.by(start_time + 10s, then);
  CHECK_FALSE(then.notify);
  wakes.by(start_time + 5s, then);
  CHECK(then.notify);
  CHECK_FALSE(wakes.is_waiting());
  CHECK_FALSE(then.timer);
}

TEST_CASE("between callbacks the earliest timer is the one that counts", "[processing]") {
  wake_ups wakes;
  wake_ups::to_do then;
  wakes.by(start_time + 5s, then);
  CHECK(then.timer == start_time + 5s);
  CHECK_FALSE(wakes.timer_started(start_time + 5s, 1));
  then = {};
  wakes.by(start_time + 9s, then);
  CHECK_FALSE(then.timer);
  wakes.by(start_time + 3s, then);
  CHECK(then.timer == start_time + 3s);
  CHECK(wakes.timer_started(start_time + 3s, 2) == 1);
  CHECK_FALSE(wakes.timer_fired(start_time + 5s));
  CHECK(wakes.timer_fired(start_time + 3s));
  wakes.by(start_time + 9s, then);
  wakes.by(start_time + 8s, then);
  CHECK(wakes.timer_started(start_time + 9s, 3) == 3);  // of no use when it was started
}

TEST_CASE("observers see the window when it is full, once a second, and when it has emptied",
          "[processing]") {
  filled_work_list list(4, false);
  window_reports reports;
  CHECK(reports.take_event(list.window(), false, start_time + 1s)->records == 4);
  CHECK_FALSE(reports.take_event(list.window(), false, start_time + 1500ms));
  CHECK(reports.take_event(list.window(), true, start_time + 1500ms)->oldest == start_time);
  while (const auto one = list.take(start_time)) list.complete(one->ticket);
  CHECK_FALSE(reports.take_event(list.window(), false, start_time + 1600ms)->oldest);
  CHECK_FALSE(reports.take_event(list.window(), false, start_time + 1700ms));
}
