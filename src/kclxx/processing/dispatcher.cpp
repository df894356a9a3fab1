// SPDX-License-Identifier: Apache-2.0
#include "processing/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "processing/taken_record.hpp"
#include "processing/thread_backtrace.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

dispatcher::dispatcher(handler with, failure_policy policy, const parallel_options& options,
                       const shard_context& shard)
    : options_(options),
      shard_(shard),
      service_(shard.service()),
      stop_(shard.stop_token()),
      failures_(std::move(policy), shard),
      is_async_(std::holds_alternative<async_record_handler::of_shard>(with)),
      handler_(std::move(with)),
      work_(options, is_async_) {}

template <class Body>
void dispatcher::change(Body body) {
  const auto now = service_->now();
  follow_up then;
  bool is_unstuck = false;
  {
    const std::lock_guard lock(mutex_);
    const bool was_stuck = work_.handlers().stuck() > 0;
    body(now, then);
    is_unstuck = was_stuck && work_.handlers().stuck() == 0;
  }
  carry_out(then);
  if (is_unstuck) stuck_.report_none();
}

void dispatcher::carry_out(const follow_up& then) {
  if (then.notify) service_->notify();
  if (then.timer) start_timer(*then.timer);
}

void dispatcher::start_timer(time_point when) {
  const auto delay = std::chrono::ceil<milliseconds>(when - service_->now());
  const auto id = service_->start_timer(std::max(delay, milliseconds(0)), milliseconds(0),
                                        [self = weak_from_this(), when] {
                                          if (const auto alive = self.lock()) alive->on_timer(when);
                                        });
  std::optional<shard_service::timer_id> superseded;
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

std::optional<dispatcher::time_point> dispatcher::next_wake() {
  const auto retry = is_over() ? std::nullopt : work_.queue().next_due();
  const auto stuck = work_.handlers().next_due();
  if (!retry || !stuck) return retry ? retry : stuck;
  return std::min(*retry, *stuck);
}

void dispatcher::post_lanes() {
  if (is_over()) return;  // a lane would end at once
  for (std::size_t more = work_.lanes_wanted(lanes_); more > 0; --more, ++lanes_) {
    pool_->post([self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->run_lane();
    });
  }
}

void dispatcher::complete(const ticket& one, follow_up& then) {
  work_.complete(one);
  if (is_async_) post_lanes();  // else the lane that calls this continues
  look(then);
}

void dispatcher::look(follow_up& then) {
  if (!wake_ups_.is_waiting()) return;
  if (has_reached(waits_for_)) return wake_ups_.notify(then);
  wake_by(requests_.due(work_.window()), then);
}

void dispatcher::wake_by(const std::optional<time_point>& when, follow_up& then) {
  if (when && !has_ended_) wake_ups_.by(*when, then);
}

void dispatcher::set_failure(std::exception_ptr why, failure_kind kind, time_point now,
                             follow_up& then) {
  if (failure_.set(std::move(why), kind)) wake_by(now, then);
  look(then);
}

void dispatcher::clear_if_unused() {
  if (has_ended_ && lanes_ == 0) work_.clear();
}

void dispatcher::run_lane() noexcept {
  try {
    for (;;) {
      const auto now = service_->now();
      std::optional<work> next;
      follow_up then;
      {
        const std::lock_guard lock(mutex_);
        if (!is_over()) next = work_.take(now, is_async_ ? 0 : accept_backtraces());
        if (next) {
          wake_by(work_.handlers().stuck_at(now), then);
          if (work_.queue().ready() == 0) look(then);  // a window that is not full wants more
        } else {
          --lanes_;
          clear_if_unused();
        }
      }
      carry_out(then);
      if (!next) break;
      if (next->failed) {
        decide(*next, std::move(next->failed));
      } else if (is_async_) {
        start(*next);
      } else {
        call(*next);
      }
    }
    observe_window(false);
  } catch (...) {  // memory is exhausted, or a thread of the service's
    fail(std::current_exception());
  }
}

void dispatcher::fail(const std::exception_ptr& why) noexcept {
  try {
    change([&](time_point now, follow_up& then) {
      set_failure(why, failure_kind::at_once, now, then);
    });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next callback throws it
  }
}

void dispatcher::call(const work& one) {
  std::exception_ptr thrown;
  try {
    std::get<record_handler::of_shard> (*handler_)(*one.what, shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (service_->is_observed()) {
    service_->observe(attempt_event(*one.what, one.attempt, service_->now() - one.began, thrown));
  }
  if (thrown) return decide(one, std::move(thrown));
  failures_.on_success();
  change([&](time_point, follow_up& then) { complete(one.with, then); });
}

/// Of an async_record_handler, whose completion may have been reported, dropped or kept when it
/// throws.
void dispatcher::start(const work& one) {
  std::exception_ptr thrown;
  try {
    std::get<async_record_handler::of_shard> (*handler_)(
        completion(std::make_unique<detail::taken_record>(weak_from_this(), one.with, one.batch,
                                                          *one.what, one.attempt)),
        shard_);
    return;
  } catch (...) {
    thrown = std::current_exception();
  }
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
  change([&](time_point now, follow_up& then) {
    if (is_late) {
      work_.remove(one.with);
    } else if (decision.what == kind::complete) {
      complete(one.with, then);
    } else if (decision.what == kind::retry) {
      work_.retry(one.with, std::move(attempts), now + decision.delay);
      wake_by(now + decision.delay, then);
      look(then);  // it may have been the last handler that ran
    } else {
      work_.remove(one.with);
      set_failure(
          std::move(thrown),
          decision.what == kind::stop ? failure_kind::after_handlers : failure_kind::lease_gone,
          now, then);
    }
  });
}

template <class Body>
bool dispatcher::report(const ticket& one, Body body) {
  bool is_in_time = false;
  change([&](time_point now, follow_up& then) {
    const auto* const attempt = work_.running(one);
    is_in_time = attempt != nullptr && !has_ended_ && !stop_.stop_requested();
    if (is_in_time) body(*attempt, now, then);
  });
  return is_in_time;
}

void dispatcher::complete(const ticket& one) {
  bool is_emptied = false;
  std::optional<record_attempted> observed;
  const bool is_in_time = report(one, [&](const auto& attempt, time_point now, follow_up& then) {
    if (service_->is_observed()) {
      observed = attempt_event(work_.window().at(attempt.which), attempt.number,
                               now - attempt.began, nullptr);
    }
    complete(one, then);
    is_emptied = work_.window().is_empty();
  });
  if (is_in_time) failures_.on_success();
  if (observed) service_->observe(std::move(*observed));
  if (is_emptied) observe_window(false);
}

void dispatcher::fail(const ticket& one, std::exception_ptr why) {
  report(one, [&](const auto&, time_point now, follow_up& then) {
    work_.fail(one, std::move(why), now);
    post_lanes();
    look(then);
  });
}

void dispatcher::touch(const ticket& one) {
  change([&](time_point now, follow_up&) { work_.handlers().touch(one, now); });
}

/// Without an open callback a timer does what has to be done meanwhile.
template <class Body>
void dispatcher::callback(Body body) {
  {
    const std::lock_guard lock(mutex_);
    wake_ups_.set_open(true);
  }
  body();  // when it throws, the session ends, and nothing is to be done between callbacks
  change([&](time_point now, follow_up& then) {
    wake_ups_.set_open(false);
    wake_by(next_wake(), then);
    if (failure_.pending()) wake_by(now, then);
  });
}

void dispatcher::process(const record_batch& batch, const checkpointer& with) {
  callback([&] {
    if (!pool_ && !batch.empty()) {
      auto pool = service_->make_thread_pool(is_async_ ? 1 : options_.lanes);
      const std::lock_guard lock(mutex_);
      pool_ = std::move(pool);
    }
    for (std::size_t offset = 0;;) {
      const auto now = service_->now();
      {
        const std::lock_guard lock(mutex_);
        offset += work_.queue().admit(batch, offset, now);
        post_lanes();
        if (offset < batch.size()) next_bytes_ = batch[offset].data().size();
      }
      if (offset == batch.size()) break;
      observe_window(true);
      if (!wait(goal::room, std::nullopt, with)) return;
    }
    throw_failure(with);
    request_checkpoint(with);
    observe_window(false);
  });
}

void dispatcher::finish(const checkpointer& with) {
  callback([&] {
    if (wait(goal::empty_window, std::nullopt, with)) with.async_checkpoint();
  });
}

void dispatcher::drain(const checkpointer& with) {
  callback([&] {
    static_cast<void>(wait(goal::empty_window, service_->now() + options_.drain_timeout, with));
    request_checkpoint(with);
    if (stop_.stop_requested()) return;
    const auto rest = state();
    if (!rest.oldest) return;
    service_->log(log_level::warning, "shutdown: records that are not complete after " +
                                          std::to_string(options_.drain_timeout.count()) +
                                          " ms: " + std::to_string(rest.records) + ", from " +
                                          to_string(rest.oldest->position) +
                                          " on; they will be delivered again");
  });
}

void dispatcher::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  clear_if_unused();
}

void dispatcher::join() {
  std::unique_ptr<thread_pool> pool;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    pool = std::move(pool_);
  }
  pool.reset();
  handler_.reset();  // a completion that is being reported may keep the dispatcher alive
}

bool dispatcher::wait(goal what, const std::optional<time_point>& deadline,
                      const checkpointer& with) {
  for (;;) {
    const auto now = service_->now();
    auto until = time_point::max();
    bool has_arrived = false;
    bool is_checkpoint_due = false;
    {
      const std::lock_guard lock(mutex_);
      work_.queue().make_due_ready(now);
      post_lanes();
      has_arrived = has_reached(what);
      until = next_wake().value_or(until);
      if (deadline) until = std::min(until, *deadline);
      if (const auto due = requests_.due(work_.window())) {
        is_checkpoint_due = *due <= now;
        if (!is_checkpoint_due) until = std::min(until, *due);
      }
      waits_for_ = what;
      if (!has_arrived) wake_ups_.begin_wait(until);
    }
    if (what != goal::no_handler) throw_failure(with);
    if (has_arrived) return true;
    if (is_checkpoint_due) request_checkpoint(with);
    report_stuck();
    if (stop_.stop_requested() || (deadline && now >= *deadline)) return false;
    service_->wait_until_notified(until);
  }
}

void dispatcher::throw_failure(const checkpointer& with) {
  std::optional<failure_kind> kind;
  {
    const std::lock_guard lock(mutex_);
    kind = failure_.pending();
  }
  if (!kind) return;
  if (kind == failure_kind::after_handlers) {
    static_cast<void>(wait(goal::no_handler, service_->now() + options_.drain_timeout, with));
  }
  if (kind != failure_kind::lease_gone) request_checkpoint(with);
  rethrow_failure();
}

void dispatcher::rethrow_failure() {
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    why = failure_.take();
  }
  std::rethrow_exception(std::move(why));
}

void dispatcher::request_checkpoint(const checkpointer& with) {
  const auto now = service_->now();
  std::optional<sequence_position> position;
  {
    const std::lock_guard lock(mutex_);
    position = requests_.take(work_.window(), now);
  }
  if (position) with.async_checkpoint(*position);
}

void dispatcher::on_timer(time_point which) {
  const auto now = service_->now();
  std::optional<failure_kind> failure;
  {
    const std::lock_guard lock(mutex_);
    if (!wake_ups_.timer_fired(which)) return;
    failure = failure_.pending();
    if (!failure) {
      work_.queue().make_due_ready(now);
      post_lanes();
    }
  }
  if (failure) {
    // The daemon reads only while a callback is open: to wait for handlers would be of no use. The
    // request is sent if the next batch is there already.
    if (failure != failure_kind::lease_gone) request_checkpoint(shard_.get_checkpointer());
    rethrow_failure();
  }
  report_stuck();
  observe_window(false);
  change([&](time_point, follow_up& then) { wake_by(next_wake(), then); });
}

void dispatcher::report_stuck() {
  const auto record = stuck_.report_due();
  if (!record || options_.when_stuck != when_stuck::leave) return;
  change([&](time_point now, follow_up& then) {
    set_failure(std::make_exception_ptr(std::runtime_error("the handler of record " + *record +
                                                           " is stuck (when_stuck::leave)")),
                failure_kind::at_once, now, then);
  });
}

window_state dispatcher::state() const {
  const auto now = service_->now();
  const std::lock_guard lock(mutex_);
  return work_.state(shard_id_, now);
}

void dispatcher::observe_window(bool is_full) {
  if (!service_->is_observed()) return;
  const auto now = service_->now();
  const std::lock_guard in_order(observing_);
  std::optional<window_changed> event;
  {
    const std::lock_guard lock(mutex_);
    event = window_events_.take(work_.window(), is_full, now);
  }
  if (event) service_->observe(std::move(*event));
}

}  // namespace kclxx::processing
