// SPDX-License-Identifier: Apache-2.0
#include "processing/dispatcher.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <kclxx/observer.hpp>

#include "base/overloaded.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

namespace {

/// While a callback waits, checkpoints are requested and window events are sent at most this often.
constexpr std::chrono::seconds report_interval{1};

/// While a callback waits, check_wait_ is called this often.
constexpr milliseconds check_interval{200};

}  // namespace

dispatcher::dispatcher(failure_policy policy, const parallel_options& options,
                       const shard_context& shard, bool is_async, std::function<void()> check_wait)
    : options_(options),
      shard_(detail::service_access::copy(shard)),
      service_(detail::service_access::of(shard)),
      stop_(shard.stop_token()),
      failures_(std::move(policy), *shard_, circuit::counted::records),
      is_async_(is_async),
      check_wait_(std::move(check_wait)),
      window_(options, is_async) {}

/// Calls `body` with the mutex held, and then wakes the callbacks' thread if that has to look
/// earlier than it planned. The callbacks' thread itself need not use it: it looks before it waits
/// or ends. What may be user code is destroyed once the mutex is released.
template <class Body>
void dispatcher::change(Body body) {
  copies_.leave_if_copied();
  const auto now = service_->now();
  deferred_effects effects;
  std::vector<record_batch> passed_batches;
  bool are_fewer_stuck = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t were_stuck = window_.stuck();
    body(now);
    effects = wake_for_next_look(now);
    are_fewer_stuck = window_.stuck() < were_stuck;
    passed_batches = window_.take_passed();
  }
  if (effects.notify) service_->notify();
  if (effects.timer != never) start_timer(effects.timer);
  if (!are_fewer_stuck) return;
  observe_in_order([this](time_point time) { return std::optional(window_.stuck_event(time)); });
}

/// For a thread of the pool. What is thrown is of user code that must not throw, and ends the
/// session. When no timer can be started for it, the next callback throws it.
template <class Body>
void dispatcher::guarded(Body body) noexcept {
  auto exception = exception_of(body);
  if (!exception) return;
  exception_of(
      [&] { change([&](time_point) { set_failure(std::move(exception), phase::fails); }); });
}

// When the callbacks' thread looks again.

bool dispatcher::has_reached(goal awaited) const {
  if (awaited == goal::room) return window_.wants_more(bytes_of_next_record_);
  if (awaited == goal::empty_window) return window_.is_empty();
  return awaited == goal::look || window_.handlers() == 0;
}

/// When a callback that waits requests the next checkpoint. Never while no record has become
/// complete since the last one.
dispatcher::time_point dispatcher::next_checkpoint() const {
  return window_.first() == requested_up_to_ ? never : last_request_ + report_interval;
}

look_situation dispatcher::situation(time_point now) const {
  look_situation found{.now = now,
                       .has_failure = has_failed(),
                       .takes_records = may_begin(now),
                       .next_stuck = window_.next_stuck(),
                       .next_retry = window_.next_retry()};
  const auto probe =
      undecided_.empty() && window_.can_begin() ? failures_.next_probe() : std::nullopt;
  if (probe) {
    found.next_probe = *probe;
    found.needs_runner = runners_wanted() > 0;
  }
  if (!waits_) return found;
  found.waits = {has_reached(waits_->awaited), waits_->deadline, next_checkpoint()};
  // A callback that waits for the last handlers knows of the failure.
  if (waits_->awaited == goal::no_handler) found.has_failure = false;
  return found;
}

/// The callbacks' thread either waits in a callback, until waits_->until; or runs in one, and will
/// look before it waits or ends; or is between callbacks, and looks at timer_.
dispatcher::deferred_effects dispatcher::wake_for_next_look(time_point now) {
  deferred_effects effects;
  if (phase_ == phase::over || (is_in_callback_ && !waits_)) return effects;
  const auto look = next_look(situation(now));
  if (waits_) {
    effects.notify = look < waits_->until;
    if (effects.notify) waits_.reset();  // it is awake: no further change notifies it
  } else if (look < timer_) {
    timer_ = effects.timer = look;
  }
  return effects;
}

/// The service is called without the mutex, so other threads may ask for an earlier time meanwhile:
/// whose timer comes too late cancels it.
void dispatcher::start_timer(time_point time) {
  const auto delay = std::chrono::ceil<milliseconds>(time - service_->now());
  std::optional superseded = service_->start_timer(
      std::max(delay, milliseconds(0)), milliseconds(0), [self = weak_from_this(), time] {
        if (const auto alive = self.lock()) alive->on_timer(time);
      });
  {
    // timer_ is still this time: then the timer before it is of no use. Otherwise this one is.
    const std::lock_guard lock(mutex_);
    if (timer_ == time) std::swap(superseded, timer_id_);
  }
  if (superseded) service_->cancel_timer(*superseded);
}

// Threads of the pool.

void dispatcher::post(void (dispatcher::*function)()) {
  if (!pool_) return;  // join() waits for the functions that run
  pool_->post([self = weak_from_this(), function] {
    if (const auto alive = self.lock()) ((*alive).*function)();
  });
}

/// With an async_record_handler one runner starts all handlers, and finds all verdicts.
std::size_t dispatcher::runners_wanted() const {
  if (!is_async_) return std::min(options_.lanes - runners_, window_.ready());
  return runners_ == 0 && (!undecided_.empty() || window_.can_begin()) ? 1 : 0;
}

void dispatcher::post_runners() {
  if (!works()) return;  // a runner would end at once
  for (std::size_t wanted = runners_wanted(); wanted > 0; --wanted, ++runners_) {
    post(&dispatcher::run);
  }
}

/// Takes one record after the other, and leaves when it finds none. It leaves under the lock under
/// which records become ready and runners are posted: so no record waits without a runner. An open
/// circuit turns runners away; then the callbacks' thread posts one at the next probe.
void dispatcher::run() noexcept {
  guarded([&] {
    for (;;) {
      std::optional<window::begun_attempt> begun;
      std::optional<pending_failure> failed;
      change([&](time_point now) {
        if (may_begin(now) && !undecided_.empty()) {
          failed = std::move(undecided_.front());
          undecided_.pop_front();
        } else if (may_begin(now) && window_.can_begin()) {
          const auto probe = failures_.try_begin(now);
          if (probe) begun = window_.begin(now, *probe);
        }
        if (!begun && !failed) --runners_;
      });
      if (begun) {
        is_async_ ? start_handler(*begun) : call_handler(*begun);
      } else if (failed) {
        decide(*std::move(failed));
      } else {
        break;
      }
    }
    observe_window(false);
  });
}

void dispatcher::call_handler(const window::begun_attempt& begun) {
  auto thrown =
      exception_of([&] { std::get<record_handler::of_shard> (*handler_)(*begun.record, *shard_); });
  if (!thrown) return complete(begun.id);
  std::optional<pending_failure> failed;
  change([&](time_point now) { failed = end_failed_handler(begun.id, std::move(thrown), now); });
  decide(*std::move(failed));
}

/// Calls an async_record_handler. When it throws, its completion may be kept, or was reported or
/// dropped before: by this thread or by any other.
void dispatcher::start_handler(const window::begun_attempt& begun) {
  auto thrown = exception_of([&] {
    std::get<async_record_handler::of_shard> (*handler_)(
        detail::taken_record::completion_of(
            {weak_from_this(), begun.id, begun.batch, *begun.record}),
        *shard_);
  });
  if (!thrown) return;
  bool was_complete = false;
  change([&](time_point now) {
    if (window_.is_with_handler(begun.id)) {
      return undecided_.push_back(end_failed_handler(begun.id, std::move(thrown), now));
    }
    const auto reported = std::find_if(
        undecided_.begin(), undecided_.end(),
        [&](const auto& failed) { return failed.id.record_number == begun.id.record_number; });
    was_complete = works() && reported == undecided_.end();
    // Most likely the completion was dropped since this was thrown, so this is the cause. The other
    // exception is destroyed here, once the mutex is released.
    if (reported != undecided_.end()) std::swap(reported->failure.thrown, thrown);
  });
  if (!was_complete) return;
  service_->log(log_level::warning,
                "the handler of record " + to_string(begun.record->position()) +
                    " reported it as complete, and then threw: " + message_of(thrown));
}

dispatcher::pending_failure dispatcher::end_failed_handler(const attempt_id& id,
                                                           std::exception_ptr thrown,
                                                           time_point now) {
  const auto duration = now - window_.began(id);
  failed_attempts& attempts = window_.fail(id, now);
  failures_.note_failure(attempts);
  return {id, duration, {&window_.record_of(id), &attempts, std::move(thrown)}};
}

/// Finds the verdict, and has it carried out. The mutex is not held: the policy and the parking lot
/// are user code. The failure is moved from thread to thread, and never copied, since an exception
/// is destroyed where it is handled.
void dispatcher::decide(pending_failure failed) {
  failure& judged = failed.failure;
  if (!stop_.stop_requested()) {
    if (service_->is_observed()) {
      service_->observe(
          attempt_event(*judged.record, failed.id.attempt, failed.duration, judged.thrown));
    }
    failures_.judge({&judged, 1});
  }
  if (!std::holds_alternative<verdicts::park>(judged.verdict)) return carry_out(failed);
  if (!is_async_) return park({&failed, 1});
  // The only runner must not wait for a disk. The parker takes all that have come meanwhile.
  change([&](time_point) {
    to_be_parked_.push_back(std::move(failed));
    if (!std::exchange(has_parker_, true)) post(&dispatcher::run_parker);
  });
}

void dispatcher::run_parker() noexcept {
  guarded([&] {
    for (;;) {
      std::vector<pending_failure> judged;
      bool goes_on = false;
      change([&](time_point) {
        judged.swap(to_be_parked_);
        goes_on = has_parker_ = !judged.empty() && works();
      });
      if (!goes_on) return;
      park(judged);
    }
  });
}

/// Parks all with one call of the lot.
void dispatcher::park(std::span<pending_failure> judged) {
  std::vector<failure> failures;
  change([&](time_point now) {
    for (pending_failure& pending : judged) {
      window_.begin_parking(pending.id, now);
      failures.push_back(std::move(pending.failure));
    }
  });
  failures_.park(failures);
  auto parked = failures.begin();
  for (pending_failure& pending : judged) {
    pending.failure = std::move(*parked++);
    carry_out(pending);
  }
}

void dispatcher::carry_out(pending_failure& judged) {
  // An exception that ends the session is destroyed by the thread that throws it. So no handle on
  // it stays here.
  judged.failure.thrown = nullptr;
  const bool is_late = stop_.stop_requested();  // nothing can be persisted any more
  change([&](time_point now) {
    if (is_late) return window_.cancel(judged.id);
    const auto end_session = [&](std::exception_ptr& exception, phase kind) {
      window_.cancel(judged.id);
      set_failure(std::move(exception), kind);
    };
    std::visit(
        overloaded{
            [&](const verdicts::retry& retry) { window_.retry(judged.id, now + retry.delay); },
            [&](const verdicts::complete&) {
              window_.complete(judged.id);
              if (is_async_) post_runners();  // else the caller is a runner, and goes on
            },
            [](const verdicts::park&) {},  // park() leaves none of these
            [&](verdicts::stop& stop) { end_session(stop.exception, phase::fails_after_handlers); },
            [&](verdicts::lease_gone& gone) { end_session(gone.exception, phase::lease_gone); },
        },
        judged.failure.verdict);
  });
}

/// The first failure counts.
void dispatcher::set_failure(std::exception_ptr exception, phase kind) {
  if (phase_ != phase::works) return;
  phase_ = kind;
  failure_ = std::move(exception);
}

// Reports.

/// False when the attempt has ended, or when it is too late for a report, which then ends it.
bool dispatcher::accepts_report_of(const attempt_id& id) {
  if (!window_.is_with_handler(id)) return false;
  const bool is_late = phase_ == phase::over || stop_.stop_requested();
  if (is_late) window_.cancel(id);
  return !is_late;
}

void dispatcher::complete(const attempt_id& id) {
  bool has_effect = false;
  bool is_emptied = false;
  std::optional<sequence_position> retried;
  std::optional<observer::record_attempted> observed;
  change([&](time_point now) {
    has_effect = accepts_report_of(id);
    if (!has_effect) return;
    if (id.attempt > 1) retried = window_.record_of(id).position();
    if (service_->is_observed()) {
      observed = attempt_event(window_.record_of(id), id.attempt, now - window_.began(id), {});
    }
    window_.complete(id);
    if (is_async_) post_runners();  // else the caller is a runner, and goes on
    is_emptied = window_.is_empty();
  });
  if (!has_effect) return;
  // When this closes the circuit, all lanes have work again, not only the probe's.
  if (failures_.on_success()) change([this](time_point) { post_runners(); });
  if (retried) failures_.on_retry_success(*retried, id.attempt);
  if (observed) service_->observe(std::move(*observed));
  if (is_emptied) observe_window(false);
}

void dispatcher::fail(const attempt_id& id, std::exception_ptr exception) {
  change([&](time_point now) {
    if (!accepts_report_of(id)) return;
    // A runner finds the verdict: the policy is user code, and must not run in the client's thread.
    undecided_.push_back(end_failed_handler(id, std::move(exception), now));
    post_runners();
  });
}

void dispatcher::touch(const attempt_id& id) {
  change([&](time_point now) { window_.touch(id, now); });
}

// The callbacks' thread.

/// Runs a callback. Attempts may begin until `last_begin`. Between two callbacks a timer does what
/// has to be done.
template <class Body>
void dispatcher::callback(time_point last_begin, Body body) {
  {
    const std::lock_guard lock(mutex_);
    is_in_callback_ = true;
    last_begin_ = last_begin;
  }
  body();  // when it throws, no record is processed any more
  change([this](time_point) { is_in_callback_ = false; });
}

void dispatcher::process(const record_batch& delivered) {
  // The records that a daemon repeats (P69) are complete, or in the window.
  const record_batch batch = last_admitted_ ? delivered.after(*last_admitted_) : delivered;
  callback(never, [&] {
    if (!pool_ && !batch.empty()) {
      const std::size_t threads_of_async = failures_.parks() ? 2 : 1;
      auto pool = service_->make_thread_pool(is_async_ ? threads_of_async : options_.lanes);
      const std::lock_guard lock(mutex_);
      pool_ = std::move(pool);
    }
    std::vector<std::string> keys;  // user code makes them: without the mutex
    if (options_.key) {
      for (const record& record : batch) keys.push_back(options_.key(record));
      copies_.leave_if_copied();
    }
    std::size_t admitted = 0;
    bool is_full = false;
    do {
      const auto now = service_->now();
      {
        const std::lock_guard lock(mutex_);
        admitted += window_.admit(batch, admitted, now, keys);
        post_runners();
        is_full = admitted < batch.size();
        if (is_full) bytes_of_next_record_ = batch[admitted].data().size();
      }
      if (is_full) observe_window(true);
      if (!wait(is_full ? goal::room : goal::look, never)) return;
    } while (is_full);
    if (!batch.empty()) last_admitted_ = batch.back().position();
    request_checkpoint();
    observe_window(false);
  });
}

void dispatcher::finish_shard() {
  callback(never, [&] {
    if (wait(goal::empty_window, never)) service_->async_checkpoint(std::nullopt, {});
  });
}

void dispatcher::drain() {
  const auto deadline = service_->now() + options_.drain_timeout;
  callback(deadline, [&] {
    static_cast<void>(wait(goal::empty_window, deadline));
    if (stop_.stop_requested()) return;  // nothing more is persisted
    request_checkpoint();
    std::string incomplete;
    {
      const std::lock_guard lock(mutex_);
      if (window_.is_empty()) return;
      incomplete =
          std::to_string(window_.incomplete()) + ", from " + to_string(window_.oldest().position());
    }
    service_->log(log_level::warning, "shutdown: records that are not complete after " +
                                          std::to_string(options_.drain_timeout.count()) + " ms: " +
                                          incomplete + " on; they will be delivered again");
  });
}

void dispatcher::stop() {
  const std::lock_guard lock(mutex_);
  phase_ = phase::over;
}

void dispatcher::join() {
  std::unique_ptr<detail::thread_pool> pool;
  {
    const std::lock_guard lock(mutex_);
    phase_ = phase::over;
    pool = std::move(pool_);
  }
  pool.reset();      // without the mutex, which the threads that it waits for need
  handler_.reset();  // a completion that is being reported may keep the dispatcher alive
}

/// False when the deadline has passed, or a stop was requested. Errors: the exception that ends the
/// processing.
bool dispatcher::wait(goal awaited, time_point deadline) {
  for (;;) {
    // A look: all that is due is done, before anything is waited for.
    const auto now = service_->now();
    bool has_arrived = false;
    bool is_checkpoint_due = false;
    auto failure = phase::works;
    {
      const std::lock_guard lock(mutex_);
      waits_.reset();
      window_.make_due_ready(now);
      post_runners();
      if (has_failed()) failure = phase_;
      if (failure == phase::fails_after_handlers && awaited != goal::no_handler) {
        awaited = goal::no_handler;
        deadline = std::min(deadline, now + options_.drain_timeout);
      }
      has_arrived = has_reached(awaited);
      is_checkpoint_due = next_checkpoint() <= now;
    }
    if (failure != phase::works && (has_arrived || failure != phase::fails_after_handlers)) {
      throw_failure();
    }
    if (has_arrived) return true;
    if (is_checkpoint_due) request_checkpoint();
    report_stuck();
    if (stop_.stop_requested() || now >= deadline) {
      if (failure != phase::works) throw_failure();
      return false;
    }
    if (check_wait_) check_wait_();
    const auto until = begin_wait(awaited, deadline);
    service_->wait_until_notified(check_wait_ ? std::min(until, now + check_interval) : until);
  }
}

/// Returns until when to wait. The time is found and waits_ is set under one lock: whatever changed
/// since the look makes the time earlier, and whatever changes from now on notifies.
dispatcher::time_point dispatcher::begin_wait(goal awaited, time_point deadline) {
  const auto now = service_->now();
  const std::lock_guard lock(mutex_);
  waits_ = {awaited, deadline, deadline};
  return waits_->until = next_look(situation(now));
}

void dispatcher::throw_failure() {
  auto kind = phase::works;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    kind = std::exchange(phase_, phase::over);
    failure = std::move(failure_);
  }
  if (kind != phase::lease_gone) request_checkpoint();
  std::rethrow_exception(failure);
}

/// The session sends what is requested while an action is open: so the callbacks' thread requests,
/// at most once in each callback or report_interval, and no runner for each record.
void dispatcher::request_checkpoint() {
  const auto now = service_->now();
  std::optional<sequence_position> position;
  {
    const std::lock_guard lock(mutex_);
    if (window_.first() == requested_up_to_) return;
    requested_up_to_ = window_.first();
    last_request_ = now;
    position = window_.watermark();
  }
  if (position) service_->async_checkpoint(*position, {});
}

void dispatcher::on_timer(time_point due) {
  const auto now = service_->now();
  bool fails = false;
  {
    const std::lock_guard lock(mutex_);
    if (timer_ != due) return;  // an earlier timer has taken its place
    timer_ = never;
    timer_id_.reset();
    fails = has_failed();
    if (!fails) {
      window_.make_due_ready(now);
      post_runners();
    }
  }
  // The daemon reads only while a callback is open, so it would be of no use to wait for handlers.
  // The request for a checkpoint is sent if the next batch is there already.
  if (fails) throw_failure();
  report_stuck();
  observe_window(false);
  change([](time_point) {});  // starts the next timer
}

void dispatcher::report_stuck() {
  const auto now = service_->now();
  std::vector<stuck_report> reports;
  {
    const std::lock_guard in_order(observing_);
    {
      const std::lock_guard lock(mutex_);
      reports = window_.take_stuck(now);
    }
    for (const stuck_report& report : reports) service_->observe(report.event);
  }
  for (const stuck_report& report : reports) service_->log(log_level::warning, report.text);
  if (reports.empty() || !options_.leave_when_stuck) return;
  const auto exception = std::make_exception_ptr(std::runtime_error(
      "the handler of record " + reports.front().record + " is stuck (leave_when_stuck)"));
  change([&](time_point) { set_failure(exception, phase::fails); });
}

// Observers.

/// Makes an event with the mutex held, and sends it. Another thread's event waits for observing_
/// meanwhile: so it is made later, and follows.
template <class Event>
void dispatcher::observe_in_order(Event make) {
  const auto now = service_->now();
  const std::lock_guard in_order(observing_);
  decltype(make(now)) event;
  {
    const std::lock_guard lock(mutex_);
    event = make(now);
  }
  if (event) service_->observe(std::move(*event));
}

/// Sends an event when the window has filled or emptied, and once in report_interval in between.
void dispatcher::observe_window(bool is_full) {
  if (!service_->is_observed()) return;
  observe_in_order([&](time_point now) -> std::optional<observer::window_changed> {
    const bool is_emptied = window_.is_empty() && !was_window_empty_;
    const bool is_early = now - last_window_event_ < report_interval;
    if (!is_full && !is_emptied && is_early) return std::nullopt;
    last_window_event_ = now;
    was_window_empty_ = window_.is_empty();
    observer::window_changed event{window_.incomplete(), window_.incomplete_bytes(), std::nullopt,
                                   window_.watermark()};
    if (!was_window_empty_) event.oldest = window_.oldest_delivery();
    return event;
  });
}

}  // namespace kclxx::processing
