// SPDX-License-Identifier: Apache-2.0
// What lanes do next, when the callbacks' thread looks again, and when observers see the window.
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

const work_list::time_point start{};

/// Four records of two keys.
struct filled_work_list : work_list {
  filled_work_list(std::size_t lanes, bool is_async, kclxx::order in = order::none)
      : work_list({.lanes = lanes, .order = in}, is_async) {
    queue().admit(owned_batch({{"a", "1"}, {"b", "2"}, {"a", "3"}, {"b", "4"}}, 1).get(), 0, start);
  }
};

std::exception_ptr error(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

TEST_CASE("lanes of a plain handler are as many as records are ready", "[processing]") {
  filled_work_list by_key(8, false, order::key);
  CHECK(by_key.lanes_wanted(0) == 2);
  filled_work_list list(3, false);
  CHECK(list.lanes_wanted(0) == 3);
  CHECK(list.lanes_wanted(2) == 1);
  for (int i = 0; i < 3; ++i) CHECK(list.take(start));
  CHECK_FALSE(list.take(start));
}

TEST_CASE("an async handler has one lane, while it can start one or a failure is to be decided on",
          "[processing]") {
  filled_work_list list(1, true);
  CHECK(list.lanes_wanted(0) == 1);
  CHECK(list.lanes_wanted(1) == 0);
  const auto first = list.take(start);
  CHECK(list.lanes_wanted(0) == 0);
  list.fail(first->ticket, error("no"), start + 1s);
  CHECK(list.lanes_wanted(0) == 1);
  const auto failed = list.take(start);
  CHECK(message_of(failed->failed) == "no");
  CHECK(failed->ended == start + 1s);
}

TEST_CASE("a retried record counts its attempts, until it is complete", "[processing]") {
  filled_work_list list(2, false);
  const auto first = list.take(start);
  CHECK(first->attempt == 1);
  auto attempts = list.begin_decision(first->ticket);
  CHECK(list.running(first->ticket) == nullptr);
  ++attempts.count;
  list.retry(first->ticket, attempts, start + 1s);
  list.queue().make_due_ready(start + 1s);
  const auto second = list.take(start);
  CHECK(second->record == first->record);
  CHECK(second->attempt == 2);
  CHECK(list.begin_decision(second->ticket).count == 1);
  list.complete(second->ticket);
}

TEST_CASE("what a handler throws takes the place of its dropped completion, not of a success",
          "[processing]") {
  filled_work_list list(2, true);
  const auto dropped = list.take(start);
  const auto complete = list.take(start);
  list.fail(dropped->ticket, error("dropped"), start);
  auto thrown = error("thrown");
  CHECK(list.fail_thrown(*dropped, thrown, start));
  CHECK(message_of(thrown) == "dropped");  // for the caller to destroy, without a lock
  CHECK(message_of(list.take(start)->failed) == "thrown");
  list.complete(complete->ticket);
  CHECK_FALSE(list.fail_thrown(*complete, thrown, start));
}

TEST_CASE("retries have at most half of the lanes while there are new records", "[processing]") {
  filled_work_list list(2, false);
  const auto fail = [&] {
    const auto one = list.take(start);
    auto attempts = list.begin_decision(one->ticket);
    ++attempts.count;
    list.retry(one->ticket, attempts, start);
  };
  fail();
  fail();
  list.queue().make_due_ready(start);
  CHECK(list.take(start)->attempt == 2);
  const auto second = list.take(start);
  CHECK(second->attempt == 1);
  list.complete(second->ticket);
  CHECK(list.take(start)->attempt == 1);
}

TEST_CASE("on a single lane, too, every second attempt can be a retry", "[processing]") {
  filled_work_list list(1, false);
  const auto first = list.take(start);
  list.retry(first->ticket, list.begin_decision(first->ticket), start);
  list.queue().make_due_ready(start);
  CHECK(list.take(start)->record == first->record);
}

TEST_CASE("every second attempt is a new record's, however many lanes are taken", "[processing]") {
  filled_work_list list(4, false);
  const auto is_retry = [&] {
    const auto one = list.take(start);
    auto attempts = list.begin_decision(one->ticket);
    ++attempts.count;
    list.retry(one->ticket, attempts, start);
    return one->attempt > 1;
  };
  CHECK_FALSE(is_retry());
  list.queue().make_due_ready(start);
  CHECK(is_retry());
  list.queue().make_due_ready(start);
  CHECK_FALSE(is_retry());
  list.queue().make_due_ready(start);
  CHECK(is_retry());
}

TEST_CASE("while the circuit is open the newest record and a failed one are tried in turn",
          "[processing]") {
  filled_work_list list(4, false);
  const auto failed = [&](kclxx::processing::circuit::probe_id probe) {
    const auto one = list.take(start, probe);
    auto attempts = list.begin_decision(one->ticket);
    ++attempts.count;
    list.retry(one->ticket, attempts, start);
    list.queue().make_due_ready(start);
    return one->record->data();
  };
  CHECK(failed(0) == "1");
  CHECK(failed(1) == "4");
  CHECK(failed(2) == "1");
  CHECK(failed(3) == "3");
  CHECK(failed(4) == "4");
  CHECK(failed(5) == "2");
}

TEST_CASE("a batch and a failure that are no longer needed are destroyed by the caller",
          "[processing]") {
  filled_work_list list(4, true);
  const auto first = list.take(start);
  list.fail(list.take(start)->ticket, error("no"), start);
  list.complete(first->ticket);
  CHECK(list.take_dropped().batches.empty());
  list.clear();
  const auto dropped = list.take_dropped();
  CHECK(dropped.batches.size() == 1);
  CHECK(dropped.failed.size() == 1);
}

TEST_CASE("a report names the stuck record and the oldest", "[processing]") {
  filled_work_list list(2, false);
  list.complete(list.take(start)->ticket);
  const auto one = list.take(start);
  CHECK_FALSE(list.report(one->ticket, start + 5s));
  REQUIRE(list.handlers().take_due(start + 60s).size() == 1);
  const auto report = list.report(one->ticket, start + 60s);
  CHECK(
      report->text() ==
      "a handler is stuck: it has had record 2/0 (partition key 'b', attempt 1) for 60000 ms; the "
      "oldest record that is not complete is 2/0 (partition key 'b', attempt 1), delivered 60000 "
      "ms ago");
  list.handlers().touch(one->ticket, start + 61s);
  CHECK_FALSE(list.report(one->ticket, start + 61s));
  list.remove(one->ticket);
  CHECK_FALSE(list.report(one->ticket, start));
}

TEST_CASE("a waiting callback is notified once when it has to look before its deadline",
          "[processing]") {
  wake_ups wakes;
  wakes.set_open(true);
  wake_ups::to_do then;
  wakes.by(start, then);  // it does not wait
  wakes.begin_wait(start + 10s);
  wakes.by(start + 10s, then);
  CHECK_FALSE(then.notify);
  wakes.by(start + 5s, then);
  CHECK(then.notify);
  CHECK_FALSE(wakes.is_waiting());
  CHECK_FALSE(then.timer);
}

TEST_CASE("between callbacks the earliest timer is the one that counts", "[processing]") {
  wake_ups wakes;
  wake_ups::to_do then;
  wakes.by(start + 5s, then);
  CHECK(then.timer == start + 5s);
  CHECK_FALSE(wakes.timer_started(start + 5s, 1));
  then = {};
  wakes.by(start + 9s, then);
  CHECK_FALSE(then.timer);
  wakes.by(start + 3s, then);
  CHECK(then.timer == start + 3s);
  CHECK(wakes.timer_started(start + 3s, 2) == 1);
  CHECK_FALSE(wakes.timer_fired(start + 5s));
  CHECK(wakes.timer_fired(start + 3s));
  wakes.by(start + 9s, then);
  wakes.by(start + 8s, then);
  CHECK(wakes.timer_started(start + 9s, 3) == 3);  // of no use when it was started
}

TEST_CASE("observers see the window when it is full, once a second, and when it has emptied",
          "[processing]") {
  filled_work_list list(4, false);
  window_reports reports;
  CHECK(reports.take_event(list.window(), false, start + 1s)->records == 4);
  CHECK_FALSE(reports.take_event(list.window(), false, start + 1500ms));
  CHECK(reports.take_event(list.window(), true, start + 1500ms)->oldest == start);
  while (const auto one = list.take(start)) list.complete(one->ticket);
  CHECK_FALSE(reports.take_event(list.window(), false, start + 1600ms)->oldest);
  CHECK_FALSE(reports.take_event(list.window(), false, start + 1700ms));
}
