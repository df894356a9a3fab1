// SPDX-License-Identifier: Apache-2.0
#include "processing/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "processing/taken_record.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

dispatcher::dispatcher(failure_policy policy, const parallel_options& options,
                       const shard_context& shard, bool is_async)
    : options_(options),
      own_shard_(detail::service_access::with(shard, detail::service_access::of(shard))),
      shard_(*own_shard_),
      service_(detail::service_access::of(shard)),
      stop_(shard.stop_token()),
      failures_(std::move(policy), shard_),
      is_async_(is_async),
      work_(options, is_async_) {}

/// What change() holds the mutex for. carry_out() then does what follows.
struct dispatcher::locked_change {
  explicit locked_change(dispatcher& changed)
      : owner(changed),
        now(owner.service_->now()),
        lock(owner.mutex_),
        were_stuck(owner.work_.handlers().stuck()) {}
  locked_change(const locked_change&) = delete;
  locked_change& operator=(const locked_change&) = delete;

  void carry_out() {  // no memory is needed before the notification: it is not lost
    const bool are_fewer_stuck = owner.work_.handlers().stuck() < were_stuck;
    dropped = owner.work_.take_dropped();
    lock.unlock();
    if (wake_up.notify) owner.service_->notify();
    if (wake_up.timer) owner.start_timer(*wake_up.timer);
    if (are_fewer_stuck) owner.report_fewer_stuck();
  }

  dispatcher& owner;
  work_list::dropped dropped{};  // declared before the lock, and so destroyed after it
  const time_point now;
  wake_ups::to_do wake_up{};
  std::unique_lock<std::mutex> lock;
  const std::size_t were_stuck;
};

/// Calls `body` with the mutex held, and after it what calls the service or destroys user code.
template <class Body>
void dispatcher::change(Body body) {
  locked_change change(*this);
  body(change);
  change.carry_out();
}

void dispatcher::start_timer(time_point time) {
  const auto delay = std::chrono::ceil<milliseconds>(time - service_->now());
  const auto id = service_->start_timer(std::max(delay, milliseconds(0)), milliseconds(0),
                                        [self = weak_from_this(), time] {
                                          if (const auto alive = self.lock()) alive->on_timer(time);
                                        });
  std::optional<detail::shard_service::timer_id> superseded;
  {
    const std::lock_guard lock(mutex_);
    superseded = wake_ups_.timer_started(time, id);
  }
  if (superseded) service_->cancel_timer(*superseded);
}

bool dispatcher::has_reached(goal awaited) {
  if (awaited == goal::room) return work_.queue().wants_more(next_bytes_);
  if (awaited == goal::empty_window) return work_.window().is_empty();
  return work_.handlers().running() == 0;
}

std::optional<dispatcher::time_point> dispatcher::next_wake(time_point now) {
  auto earliest = work_.handlers().next_due();
  const auto or_at = [&](const std::optional<time_point>& time) {
    if (time && (!earliest || *time < *earliest)) earliest = time;
  };
  if (!may_take(now)) return earliest;
  or_at(work_.queue().next_due());
  // A runner takes a probe that is due, so only one to be posted needs the wake-up.
  const auto probe = work_.is_for_handler() ? failures_.next_probe() : std::nullopt;
  if (probe && (*probe > now || work_.runners_wanted(runners_) > 0)) or_at(probe);
  return earliest;
}

void dispatcher::post_runners() {
  if (is_over()) return;  // a runner would end at once
  for (std::size_t more = work_.runners_wanted(runners_); more > 0; --more, ++runners_) {
    pool_->post([self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->run();
    });
  }
}

void dispatcher::mark_complete(const attempt_ticket& ticket, wake_ups::to_do& wake_up) {
  work_.complete(ticket);
  if (is_async_) post_runners();  // else the runner that calls this continues
  wake_callback_if_due(wake_up);
}

void dispatcher::wake_callback_if_due(wake_ups::to_do& wake_up) {
  if (!wake_ups_.is_waiting()) return;
  if (has_reached(waits_for_)) return wake_ups_.notify(wake_up);
  wake_by(reports_.request_due(work_.window()), wake_up);
}

void dispatcher::wake_by(const std::optional<time_point>& time, wake_ups::to_do& wake_up) {
  if (time && !has_ended_) wake_ups_.by(*time, wake_up);
}

void dispatcher::set_failure(std::exception_ptr& exception, failure_kind kind, time_point now,
                             wake_ups::to_do& wake_up) {
  if (failed_ == failure_kind::none) {
    failed_ = kind;
    failure_ = std::move(exception);
    wake_by(now, wake_up);
  }
  wake_callback_if_due(wake_up);
}

void dispatcher::clear_if_unused() {
  if (has_ended_ && runners_ == 0 && !is_parking_) work_.clear();
}

std::optional<work> dispatcher::take_work(time_point now) {
  if (!may_take(now)) return std::nullopt;
  if (!work_.is_for_handler()) return work_.take(now);
  const auto probe = failures_.try_begin(now);  // none: the circuit is open
  return probe ? work_.take(now, *probe) : std::nullopt;
}

void dispatcher::run() noexcept {
  try {
    for (;;) {
      std::optional<work> taken;
      change([&](locked_change& taking) {
        taken = take_work(taking.now);
        if (taken) {
          wake_by(work_.handlers().stuck_at(taking.now), taking.wake_up);
          // A window that is not full wants more.
          if (work_.queue().ready() == 0) wake_callback_if_due(taking.wake_up);
          return;
        }
        --runners_;
        clear_if_unused();
        // While this runner ran, next_wake() left the next probe to it. It is not due at `now`.
        if (may_take(taking.now) && work_.is_for_handler()) {
          wake_by(failures_.next_probe(), taking.wake_up);
        }
      });
      if (!taken) break;
      if (taken->failed) {
        decide(*taken, std::move(taken->failed));
      } else if (is_async_) {
        start_handler(*taken);
      } else {
        call_handler(*taken);
      }
    }
    observe_window(false);
  } catch (...) {  // no memory, or no thread, can be had
    break_off(std::current_exception());
  }
}

void dispatcher::break_off(std::exception_ptr exception) noexcept {
  try {
    change([&](locked_change& failing) {
      set_failure(exception, failure_kind::at_once, failing.now, failing.wake_up);
    });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next callback throws it
  }
}

void dispatcher::call_handler(const work& work) {
  std::exception_ptr thrown;
  try {
    std::get<record_handler::of_shard> (*handler_)(*work.record, shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  const bool is_late = stop_.stop_requested();
  if (!is_late && service_->is_observed()) {
    service_->observe(
        attempt_event(*work.record, work.attempt, service_->now() - work.began, thrown));
  }
  if (thrown || is_late) return decide(work, std::move(thrown));
  const bool is_outage_over = failures_.on_success();
  if (work.attempt > 1) failures_.on_retry_success(work.record->position(), work.attempt);
  change([&](locked_change& completing) {
    mark_complete(work.ticket, completing.wake_up);
    if (is_outage_over) post_runners();
  });
}

/// Of an async_record_handler, whose completion may have been reported, dropped or kept when it
/// throws.
void dispatcher::start_handler(const work& work) {
  std::exception_ptr thrown;
  try {
    std::get<async_record_handler::of_shard> (*handler_)(
        detail::taken_record::make_completion(weak_from_this(), work.ticket, work.batch,
                                              *work.record, work.attempt),
        shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) return;
  const auto now = service_->now();
  {
    const std::lock_guard lock(mutex_);
    if (work_.fail_thrown(work, thrown, now) || is_over()) return;
  }
  service_->log(log_level::warning,
                "the handler of record " + to_string(work.record->position()) +
                    " reported it as complete, and then threw: " + message_of(thrown));
}

/// An exception belongs to one thread at a time, so that it is destroyed where it is handled.
void dispatcher::decide(const work& work, std::exception_ptr thrown) {
  std::list<decision> decided(1);
  decision& one = decided.front();
  one.of = work;
  one.made = {work.record, &one.attempts, std::move(thrown)};
  {
    const std::lock_guard lock(mutex_);
    one.attempts = work_.begin_decision(work.ticket);
  }
  if (is_async_ && service_->is_observed()) {
    service_->observe(
        attempt_event(*work.record, work.attempt, work.ended - work.began, one.made.thrown));
  }
  if (!stop_.stop_requested()) failures_.judge({&one.made, 1});
  if (one.made.bad_since.empty()) return carry_out(one);
  if (!is_async_) return park(decided);
  change([&](locked_change&) {
    to_be_parked_.splice(to_be_parked_.end(), decided);
    if (std::exchange(is_parking_, true)) return;
    pool_->post([self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->run_parker();
    });
  });
}

/// All at once.
void dispatcher::park(std::list<decision>& decided) {
  std::vector<failure> failures;
  change([&](locked_change& parking) {
    for (decision& one : decided) {
      work_.begin_parking(one.of.ticket, parking.now);
      failures.push_back(std::move(one.made));
    }
    wake_by(work_.handlers().stuck_at(parking.now), parking.wake_up);
  });
  failures_.park(failures);
  auto parked = failures.begin();
  for (decision& one : decided) {
    one.made = std::move(*parked++);
    carry_out(one);
  }
}

void dispatcher::run_parker() noexcept {
  try {
    for (;;) {
      std::list<decision> decided;
      bool goes_on = false;
      change([&](locked_change&) {
        decided.swap(to_be_parked_);
        goes_on = is_parking_ = !decided.empty() && !is_over();
        if (!goes_on) clear_if_unused();
      });
      if (!goes_on) return;
      park(decided);
    }
  } catch (...) {
    break_off(std::current_exception());
  }
}

void dispatcher::carry_out(decision& decided) {
  using outcome = failure::outcome;
  const attempt_ticket& ticket = decided.of.ticket;
  failure& made = decided.made;
  const bool is_late = stop_.stop_requested();  // nothing can be persisted any more
  change([&](locked_change& deciding) {
    if (is_late) {
      work_.remove(ticket);
    } else if (made.decided == outcome::complete) {
      mark_complete(ticket, deciding.wake_up);
    } else if (made.decided == outcome::retry) {
      const auto due = deciding.now + made.delay;
      work_.retry(ticket, std::move(decided.attempts), due);
      wake_by(due, deciding.wake_up);
      wake_callback_if_due(deciding.wake_up);  // it may have been the last handler that ran
    } else {
      work_.remove(ticket);
      set_failure(
          made.thrown,
          made.decided == outcome::stop ? failure_kind::after_handlers : failure_kind::lease_gone,
          deciding.now, deciding.wake_up);
    }
  });
}

const handlers_in_progress::attempt* dispatcher::reporting(const attempt_ticket& ticket) {
  return has_ended_ || stop_.stop_requested() ? nullptr : work_.running(ticket);
}

void dispatcher::complete(const attempt_ticket& ticket) {
  int number = 0;                             // of the attempt; 0: the report has no effect
  std::optional<sequence_position> position;  // of a retried record
  std::optional<observer::record_attempted> observed;
  bool is_emptied = false;
  change([&](locked_change& completing) {
    const auto* const attempt = reporting(ticket);
    if (attempt == nullptr) return;
    number = attempt->number;
    const record& attempted = work_.window().at(attempt->record_number);
    if (number > 1) position = attempted.position();
    if (service_->is_observed()) {
      observed = attempt_event(attempted, number, completing.now - attempt->began, nullptr);
    }
    mark_complete(ticket, completing.wake_up);
    is_emptied = work_.window().is_empty();
  });
  if (number == 0) return;
  if (failures_.on_success())
    change([this](locked_change&) { post_runners(); });  // an outage is over
  if (position) failures_.on_retry_success(*position, number);
  if (observed) service_->observe(std::move(*observed));
  if (is_emptied) observe_window(false);
}

void dispatcher::fail(const attempt_ticket& ticket, std::exception_ptr exception) {
  change([&](locked_change& failing) {
    if (reporting(ticket) == nullptr) return;
    work_.fail(ticket, std::move(exception), failing.now);
    post_runners();
    wake_callback_if_due(failing.wake_up);
  });
}

void dispatcher::touch(const attempt_ticket& ticket) {
  change([&](locked_change& touching) {
    work_.handlers().touch(ticket, touching.now);
    wake_by(work_.handlers().stuck_at(touching.now), touching.wake_up);
  });
}

/// Without an open callback a timer does what has to be done meanwhile.
template <class Body>
void dispatcher::callback(Body body) {
  {
    const std::lock_guard lock(mutex_);
    wake_ups_.set_open(true);
  }
  body();  // when it throws, no record is processed any more
  change([this](locked_change& closing) {
    wake_ups_.set_open(false);
    wake_by(next_wake(closing.now), closing.wake_up);
    if (failure_) wake_by(closing.now, closing.wake_up);
  });
}

void dispatcher::process(const record_batch& delivered) {
  // What a daemon repeats (P69) is complete, or in the window.
  const record_batch batch = last_admitted_ ? delivered.after(*last_admitted_) : delivered;
  callback([&] {
    if (!pool_ && !batch.empty()) {
      const std::size_t of_async = failures_.parks() ? 2 : 1;
      auto pool = service_->make_thread_pool(is_async_ ? of_async : options_.lanes);
      const std::lock_guard lock(mutex_);
      pool_ = std::move(pool);
    }
    std::vector<std::string> keys;  // user code makes them: without the mutex
    if (options_.key) {
      for (const record& one : batch) keys.push_back(options_.key(one));
    }
    for (std::size_t offset = 0;;) {
      const auto now = service_->now();
      {
        const std::lock_guard lock(mutex_);
        last_take_.reset();
        offset += work_.queue().admit(batch, offset, now, keys);
        post_runners();
        if (offset < batch.size()) next_bytes_ = batch[offset].data().size();
      }
      if (offset == batch.size()) break;
      observe_window(true);
      if (!wait(goal::room, time_point::max())) return;
    }
    if (!batch.empty()) last_admitted_ = batch.back().position();
    throw_failure(time_point::max());
    request_checkpoint();
    observe_window(false);
  });
}

void dispatcher::end_takes(const std::optional<time_point>& time) {
  const std::lock_guard lock(mutex_);
  last_take_ = time;
}

void dispatcher::finish() {
  callback([&] {
    end_takes(std::nullopt);
    if (wait(goal::empty_window, time_point::max())) service_->async_checkpoint(std::nullopt, {});
  });
}

void dispatcher::drain() {
  callback([&] {
    const auto deadline = service_->now() + options_.drain_timeout;
    end_takes(deadline);
    static_cast<void>(wait(goal::empty_window, deadline));
    if (stop_.stop_requested()) return;  // nothing more is persisted
    request_checkpoint();
    std::string rest;
    {
      const std::lock_guard lock(mutex_);
      if (work_.window().is_empty()) return;
      rest = std::to_string(work_.window().incomplete()) + ", from " +
             to_string(work_.window().at(work_.window().begin()).position());
    }
    service_->log(log_level::warning, "shutdown: records that are not complete after " +
                                          std::to_string(options_.drain_timeout.count()) +
                                          " ms: " + rest + " on; they will be delivered again");
  });
}

void dispatcher::end() {
  change([this](locked_change&) {
    has_ended_ = true;
    clear_if_unused();
  });
}

void dispatcher::join() {
  std::unique_ptr<detail::thread_pool> pool;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    pool = std::move(pool_);
  }
  pool.reset();
  handler_.reset();  // a completion that is being reported may keep the dispatcher alive
}

bool dispatcher::wait(goal awaited, time_point deadline) {
  for (;;) {
    const auto now = service_->now();
    auto until = deadline;
    bool has_arrived = false;
    bool is_checkpoint_due = false;
    {
      const std::lock_guard lock(mutex_);
      work_.queue().make_due_ready(now);
      post_runners();
      has_arrived = has_reached(awaited);
      if (const auto wake = next_wake(now)) until = std::min(until, *wake);
      if (const auto due = reports_.request_due(work_.window())) {
        is_checkpoint_due = *due <= now;
        if (!is_checkpoint_due) until = std::min(until, *due);
      }
      waits_for_ = awaited;
      if (!has_arrived) wake_ups_.begin_wait(until);
    }
    if (awaited != goal::no_handler) throw_failure(deadline);
    if (has_arrived) return true;
    if (is_checkpoint_due) request_checkpoint();
    report_stuck();
    if (stop_.stop_requested() || now >= deadline) return false;
    service_->wait_until_notified(until);
  }
}

/// wait() calls it for each goal but no_handler, and it calls wait() with that goal alone: so the
/// two nest once.
void dispatcher::throw_failure(time_point deadline) {
  auto kind = failure_kind::none;
  {
    const std::lock_guard lock(mutex_);
    kind = pending_failure();
  }
  if (kind == failure_kind::none) return;
  if (kind == failure_kind::after_handlers) {
    const auto end = service_->now() + options_.drain_timeout;
    static_cast<void>(wait(goal::no_handler, std::min(end, deadline)));
  }
  if (kind != failure_kind::lease_gone) request_checkpoint();
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

void dispatcher::request_checkpoint() {
  const auto now = service_->now();
  std::optional<sequence_position> position;
  {
    const std::lock_guard lock(mutex_);
    position = reports_.take_request(work_.window(), now);
  }
  if (position) service_->async_checkpoint(*position, {});
}

void dispatcher::on_timer(time_point due) {
  const auto now = service_->now();
  auto failure = failure_kind::none;
  {
    const std::lock_guard lock(mutex_);
    if (!wake_ups_.timer_fired(due)) return;
    failure = pending_failure();
    if (failure == failure_kind::none) {
      work_.queue().make_due_ready(now);
      post_runners();
    }
  }
  if (failure != failure_kind::none) {
    // The daemon reads only while a callback is open: to wait for handlers would be of no use. The
    // request is sent if the next batch is there already.
    if (failure != failure_kind::lease_gone) request_checkpoint();
    rethrow_failure();
  }
  report_stuck();
  observe_window(false);
  change([this](locked_change& waiting) { wake_by(next_wake(waiting.now), waiting.wake_up); });
}

/// An event leaves while observing_ is locked: then it is true, and follows the ones before it.
void dispatcher::report_stuck() {
  const auto now = service_->now();
  std::vector<attempt_ticket> due;
  {
    const std::lock_guard lock(mutex_);
    due = work_.handlers().take_due(now);
  }
  std::exception_ptr why;
  for (const attempt_ticket& ticket : due) {
    std::optional<stuck_report> report;
    {
      const std::lock_guard in_order(observing_);
      {
        const std::lock_guard lock(mutex_);
        report = work_.report(ticket, now);
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
  change([&](locked_change& failing) {
    set_failure(why, failure_kind::at_once, failing.now, failing.wake_up);
  });
}

void dispatcher::report_fewer_stuck() {
  const auto now = service_->now();
  const std::lock_guard in_order(observing_);
  observer::handlers_stuck event;
  {
    const std::lock_guard lock(mutex_);
    event = work_.stuck(now);
  }
  service_->observe(std::move(event));
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
