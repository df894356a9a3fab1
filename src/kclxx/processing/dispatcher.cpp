// SPDX-License-Identifier: Apache-2.0
#include "processing/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include "processing/taken_record.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

dispatcher::dispatcher(failure_policy policy, const parallel_options& options,
                       const shard_context& shard, bool is_async)
    : options_(options),
      clamped_(shard),
      shard_(clamped_.context),
      service_(shard.service()),
      stop_(shard.stop_token()),
      failures_(std::move(policy), shard_),
      is_async_(is_async),
      work_(options, is_async_) {}

/// A change, for which the mutex is held until carry_out(). That does what follows.
struct dispatcher::step {
  explicit step(dispatcher& whose)
      : of(whose),
        now(of.service_->now()),
        lock(of.mutex_),
        was_stuck(of.work_.handlers().stuck() > 0) {}

  void carry_out() {
    const bool is_unstuck = was_stuck && of.work_.handlers().stuck() == 0;
    dropped = of.work_.take_dropped();
    lock.unlock();
    if (then.notify) of.service_->notify();
    if (then.timer) of.start_timer(*then.timer);
    if (is_unstuck) of.report_unstuck();
    if (of.clamped_.checkpoints->is_awaited()) of.pass_watermark();
  }

  dispatcher& of;
  work_list::dropped dropped{};  // declared before the lock, and so destroyed after it
  const time_point now;
  follow_up then{};
  std::unique_lock<std::mutex> lock;
  const bool was_stuck;
};

std::optional<sequence_position> dispatcher::watermark() {
  const std::lock_guard lock(mutex_);
  return work_.window().position();
}

void dispatcher::pass_watermark() {
  if (const auto position = watermark()) clamped_.checkpoints->pass(*position);
}

void dispatcher::start_timer(time_point when) {
  const auto delay = std::chrono::ceil<milliseconds>(when - service_->now());
  const auto id = service_->start_timer(std::max(delay, milliseconds(0)), milliseconds(0),
                                        [self = weak_from_this(), when] {
                                          if (const auto alive = self.lock()) alive->on_timer(when);
                                        });
  std::optional<detail::shard_service::timer_id> superseded;
  {
    const std::lock_guard lock(mutex_);
    superseded = wake_ups_.timer_started(when, id);
  }
  if (superseded) service_->cancel_timer(*superseded);
}

bool dispatcher::has_reached(goal what) {
  if (what == goal::room) return work_.queue().wants_more(next_bytes_);
  if (what == goal::empty_window) return work_.window().is_empty();
  return work_.handlers().running() == 0;
}

std::optional<dispatcher::time_point> dispatcher::next_wake(time_point now) {
  auto next = work_.handlers().next_due();
  const auto or_at = [&](const std::optional<time_point>& when) {
    if (when && (!next || *when < *next)) next = when;
  };
  if (!may_take(now)) return next;
  or_at(work_.queue().next_due());
  if (work_.lanes_wanted(lanes_) > 0) or_at(failures_.next_probe());
  return next;
}

void dispatcher::post_lanes() {
  if (is_over()) return;  // a lane would end at once
  for (std::size_t more = work_.lanes_wanted(lanes_); more > 0; --more, ++lanes_) {
    pool_->post([self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->run_lane();
    });
  }
}

void dispatcher::mark_complete(const ticket& one, follow_up& then) {
  work_.complete(one);
  if (is_async_) post_lanes();  // else the lane that calls this continues
  look(then);
}

void dispatcher::look(follow_up& then) {
  if (!wake_ups_.is_waiting()) return;
  if (has_reached(waits_for_)) return wake_ups_.notify(then);
  wake_by(reports_.request_due(work_.window()), then);
}

void dispatcher::wake_by(const std::optional<time_point>& when, follow_up& then) {
  if (when && !has_ended_) wake_ups_.by(*when, then);
}

void dispatcher::set_failure(std::exception_ptr& why, failure_kind kind, time_point now,
                             follow_up& then) {
  if (failed_ == failure_kind::none) {
    failed_ = kind;
    failure_ = std::move(why);
    wake_by(now, then);
  }
  look(then);
}

void dispatcher::clear_if_unused() {
  if (has_ended_ && lanes_ == 0) work_.clear();
}

void dispatcher::run_lane() noexcept {
  try {
    for (;;) {
      step taking(*this);
      std::optional<work> next;
      if (may_take(taking.now)) {
        const auto probe = work_.is_for_handler() ? failures_.try_begin(taking.now)
                                                  : std::optional(circuit::no_probe);
        if (probe) next = work_.take(taking.now, *probe);
      }
      if (next) {
        wake_by(work_.handlers().stuck_at(taking.now), taking.then);
        if (work_.queue().ready() == 0) look(taking.then);  // a window that is not full wants more
      } else {
        --lanes_;
        clear_if_unused();
        // The callbacks' thread has left the probe to this lane, which read the clock before it.
        if (may_take(taking.now) && work_.is_for_handler()) {
          wake_by(failures_.next_probe(), taking.then);
        }
      }
      taking.carry_out();
      if (!next) break;
      if (next->failed) {
        decide(*next, std::move(next->failed));
      } else if (is_async_) {
        start_handler(*next);
      } else {
        call_handler(*next);
      }
    }
    observe_window(false);
  } catch (...) {  // memory is exhausted, or a thread of the service's
    break_off(std::current_exception());
  }
}

void dispatcher::break_off(std::exception_ptr why) noexcept {
  try {
    step failing(*this);
    set_failure(why, failure_kind::at_once, failing.now, failing.then);
    failing.carry_out();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next callback throws it
  }
}

void dispatcher::call_handler(const work& one) {
  std::exception_ptr thrown;
  try {
    std::get<record_handler::of_shard> (*handler_)(*one.what, shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  forked_.leave_if_copy(shard_.shard_id());
  const bool is_late = stop_.stop_requested();
  if (!is_late && service_->is_observed()) {
    service_->observe(attempt_event(*one.what, one.attempt, service_->now() - one.began, thrown));
  }
  if (thrown || is_late) return decide(one, std::move(thrown));
  const bool is_outage_over = failures_.on_success();
  if (one.attempt > 1) failures_.on_retry_success(one.what->position(), one.attempt);
  step completing(*this);
  mark_complete(one.with, completing.then);
  if (is_outage_over) post_lanes();
  completing.carry_out();
}

/// Of an async_record_handler, whose completion may have been reported, dropped or kept when it
/// throws.
void dispatcher::start_handler(const work& one) {
  std::exception_ptr thrown;
  try {
    std::get<async_record_handler::of_shard> (*handler_)(
        completion(std::make_unique<detail::taken_record>(weak_from_this(), one.with, one.batch,
                                                          *one.what, one.attempt)),
        shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  forked_.leave_if_copy(shard_.shard_id());
  if (!thrown) return;
  const auto now = service_->now();
  {
    const std::lock_guard lock(mutex_);
    if (work_.fail_thrown(one, thrown, now) || is_over()) return;
  }
  service_->log(log_level::warning,
                "the handler of record " + to_string(one.what->position()) +
                    " reported it as complete, and then threw: " + message_of(thrown));
}

/// An exception belongs to one thread at a time, so that it is destroyed where it is handled.
void dispatcher::decide(const work& one, std::exception_ptr thrown) {
  failed_attempts attempts;
  {
    const std::lock_guard lock(mutex_);
    attempts = work_.begin_decision(one.with);
  }
  if (is_async_ && service_->is_observed()) {
    service_->observe(attempt_event(*one.what, one.attempt, one.ended - one.began, thrown));
  }
  using kind = failure_decision::kind;
  failure_decision decision{kind::stop};
  const bool is_late = stop_.stop_requested();  // nothing can be persisted any more
  if (!is_late) {
    try {
      decision = failures_.on_failure(*one.what, attempts, thrown);
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  step deciding(*this);
  if (is_late) {
    work_.remove(one.with);
  } else if (decision.what == kind::complete) {
    mark_complete(one.with, deciding.then);
  } else if (decision.what == kind::retry) {
    const auto due = deciding.now + decision.delay;
    work_.retry(one.with, std::move(attempts), due);
    wake_by(due, deciding.then);
    look(deciding.then);  // it may have been the last handler that ran
  } else {
    work_.remove(one.with);
    set_failure(
        thrown,
        decision.what == kind::stop ? failure_kind::after_handlers : failure_kind::lease_gone,
        deciding.now, deciding.then);
  }
  deciding.carry_out();
}

const handlers_in_progress::attempt* dispatcher::reporting(const ticket& one) {
  return has_ended_ || stop_.stop_requested() ? nullptr : work_.running(one);
}

void dispatcher::complete(const ticket& one) {
  forked_.leave_if_copy(shard_.shard_id());  // before a lock, which another thread may have had
  step completing(*this);
  const auto* const found = reporting(one);
  if (found == nullptr) return completing.carry_out();
  const auto attempt = *found;
  std::optional<sequence_position> position;  // of a retried record
  std::optional<observer::record_attempted> observed;
  const record& what = work_.window().at(attempt.which);
  if (attempt.number > 1) position = what.position();
  if (service_->is_observed()) {
    observed = attempt_event(what, attempt.number, completing.now - attempt.began, nullptr);
  }
  mark_complete(one, completing.then);
  const bool is_emptied = work_.window().is_empty();
  completing.carry_out();
  if (failures_.on_success()) {  // an outage is over
    step posting(*this);
    post_lanes();
    posting.carry_out();
  }
  if (position) failures_.on_retry_success(*position, attempt.number);
  if (observed) service_->observe(std::move(*observed));
  if (is_emptied) observe_window(false);
}

void dispatcher::fail(const ticket& one, std::exception_ptr why) {
  forked_.leave_if_copy(shard_.shard_id());
  step failing(*this);
  if (reporting(one) != nullptr) {
    work_.fail(one, std::move(why), failing.now);
    post_lanes();
    look(failing.then);
  }
  failing.carry_out();
}

void dispatcher::touch(const ticket& one) {
  step touching(*this);
  work_.handlers().touch(one, touching.now);
  touching.carry_out();
}

/// Without an open callback a timer does what has to be done meanwhile.
template <class Body>
void dispatcher::callback(Body body) {
  {
    const std::lock_guard lock(mutex_);
    wake_ups_.set_open(true);
  }
  body();  // when it throws, the session ends, and nothing is to be done between callbacks
  step closing(*this);
  wake_ups_.set_open(false);
  wake_by(next_wake(closing.now), closing.then);
  if (failure_) wake_by(closing.now, closing.then);
  closing.carry_out();
}

void dispatcher::process(const record_batch& batch, const checkpointer& with) {
  callback([&] {
    if (!pool_ && !batch.empty()) {
      auto pool = service_->make_thread_pool(is_async_ ? 1 : options_.lanes);
      const std::lock_guard lock(mutex_);
      pool_ = std::move(pool);
    }
    std::vector<record_queue::key_id> keys;  // user code makes them: without the mutex
    if (options_.key) {
      for (const record& one : batch) keys.push_back(record_queue::id_of(options_.key(one)));
    }
    for (std::size_t offset = 0;;) {
      const auto now = service_->now();
      {
        const std::lock_guard lock(mutex_);
        last_take_.reset();
        offset += work_.queue().admit(batch, offset, now, keys);
        post_lanes();
        if (offset < batch.size()) next_bytes_ = batch[offset].data().size();
      }
      if (offset == batch.size()) break;
      observe_window(true);
      if (!wait(goal::room, time_point::max(), with)) return;
    }
    throw_failure(with, time_point::max());
    request_checkpoint(with);
    observe_window(false);
  });
}

void dispatcher::end_takes(const std::optional<time_point>& when) {
  const std::lock_guard lock(mutex_);
  last_take_ = when;
}

void dispatcher::finish(const checkpointer& with) {
  callback([&] {
    end_takes(std::nullopt);
    if (wait(goal::empty_window, time_point::max(), with)) with.async_checkpoint();
  });
}

void dispatcher::drain(const checkpointer& with) {
  callback([&] {
    const auto deadline = service_->now() + options_.drain_timeout;
    end_takes(deadline);
    static_cast<void>(wait(goal::empty_window, deadline, with));
    if (stop_.stop_requested()) return;  // nothing more is persisted
    request_checkpoint(with);
    std::string rest;
    {
      const std::lock_guard lock(mutex_);
      if (work_.window().is_empty()) return;
      rest = std::to_string(work_.window().incomplete()) + ", from " +
             to_string(work_.window().at(work_.window().watermark()).position());
    }
    service_->log(log_level::warning, "shutdown: records that are not complete after " +
                                          std::to_string(options_.drain_timeout.count()) +
                                          " ms: " + rest + " on; they will be delivered again");
  });
}

void dispatcher::end() {
  step ending(*this);
  has_ended_ = true;
  clear_if_unused();
  ending.carry_out();
  clamped_.checkpoints->release();
}

void dispatcher::join() {
  std::unique_ptr<detail::thread_pool> pool;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    pool = std::move(pool_);
  }
  clamped_.checkpoints->end();  // a handler may wait for one of them
  pool.reset();
  handler_.reset();  // a completion that is being reported may keep the dispatcher alive
}

bool dispatcher::wait(goal what, time_point deadline, const checkpointer& with) {
  for (;;) {
    const auto now = service_->now();
    auto until = deadline;
    bool has_arrived = false;
    bool is_checkpoint_due = false;
    {
      const std::lock_guard lock(mutex_);
      work_.queue().make_due_ready(now);
      post_lanes();
      has_arrived = has_reached(what);
      if (const auto wake = next_wake(now)) until = std::min(until, *wake);
      if (const auto due = reports_.request_due(work_.window())) {
        is_checkpoint_due = *due <= now;
        if (!is_checkpoint_due) until = std::min(until, *due);
      }
      waits_for_ = what;
      if (!has_arrived) wake_ups_.begin_wait(until);
    }
    if (what != goal::no_handler) throw_failure(with, deadline);
    if (has_arrived) return true;
    if (is_checkpoint_due) request_checkpoint(with);
    report_stuck();
    if (stop_.stop_requested() || now >= deadline) return false;
    service_->wait_until_notified(until);
  }
}

void dispatcher::throw_failure(const checkpointer& with, time_point deadline) {
  auto kind = failure_kind::none;
  {
    const std::lock_guard lock(mutex_);
    kind = pending_failure();
  }
  if (kind == failure_kind::none) return;
  if (kind == failure_kind::after_handlers) {
    const auto end = service_->now() + options_.drain_timeout;
    static_cast<void>(wait(goal::no_handler, std::min(end, deadline), with));
  }
  if (kind != failure_kind::lease_gone) request_checkpoint(with);
  rethrow_failure();
}

void dispatcher::rethrow_failure() {
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    why = std::exchange(failure_, nullptr);
  }
  std::rethrow_exception(std::move(why));
}

void dispatcher::request_checkpoint(const checkpointer& with) {
  const auto now = service_->now();
  std::optional<sequence_position> position;
  {
    const std::lock_guard lock(mutex_);
    position = reports_.take_request(work_.window(), now);
  }
  if (position) with.async_checkpoint(*position);
}

void dispatcher::on_timer(time_point which) {
  const auto now = service_->now();
  auto failure = failure_kind::none;
  {
    const std::lock_guard lock(mutex_);
    if (!wake_ups_.timer_fired(which)) return;
    failure = pending_failure();
    if (failure == failure_kind::none) {
      work_.queue().make_due_ready(now);
      post_lanes();
    }
  }
  if (failure != failure_kind::none) {
    // The daemon reads only while a callback is open: to wait for handlers would be of no use. The
    // request is sent if the next batch is there already.
    if (failure != failure_kind::lease_gone) request_checkpoint(checkpointer(service_));
    rethrow_failure();
  }
  report_stuck();
  observe_window(false);
  step waiting(*this);
  wake_by(next_wake(waiting.now), waiting.then);
  waiting.carry_out();
}

/// An event leaves while observing_ is locked: then it is true, and follows the ones before it.
void dispatcher::report_stuck() {
  const auto now = service_->now();
  std::vector<ticket> due;
  {
    const std::lock_guard lock(mutex_);
    due = work_.handlers().take_due(now);
  }
  std::exception_ptr why;
  for (const auto& one : due) {
    std::optional<stuck_report> report;
    {
      const std::lock_guard in_order(observing_);
      {
        const std::lock_guard lock(mutex_);
        report = work_.report(one, now);
      }
      if (!report) continue;
      service_->observe(report->event);
    }
    service_->log(log_level::warning, report->text());
    if (why || !options_.leave_when_stuck) continue;
    why = std::make_exception_ptr(std::runtime_error("the handler of record " + report->record +
                                                     " is stuck (leave_when_stuck)"));
  }
  if (!why) return;
  step failing(*this);
  set_failure(why, failure_kind::at_once, failing.now, failing.then);
  failing.carry_out();
}

void dispatcher::report_unstuck() {
  const std::lock_guard in_order(observing_);
  {
    const std::lock_guard lock(mutex_);
    if (work_.handlers().stuck() > 0) return;
  }
  service_->observe(observer::handlers_stuck{});
}

void dispatcher::observe_window(bool is_full) {
  if (!service_->is_observed()) return;
  const auto now = service_->now();
  const std::lock_guard in_order(observing_);
  std::optional<observer::window_changed> event;
  {
    const std::lock_guard lock(mutex_);
    event = reports_.take_event(work_.window(), is_full, now);
  }
  if (event) service_->observe(std::move(*event));
}

}  // namespace kclxx::processing
