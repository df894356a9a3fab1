// SPDX-License-Identifier: Apache-2.0
#include "processing/dispatcher.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <kclxx/observer.hpp>

namespace kclxx::processing {

using std::chrono::milliseconds;

namespace {

/// Of checkpoints while a callback waits, and of events about the window.
constexpr std::chrono::seconds pace{1};

}  // namespace

dispatcher::dispatcher(failure_policy policy, const parallel_options& options,
                       const shard_context& shard, bool is_async)
    : options_(options),
      shard_(detail::service_access::with(shard, detail::service_access::of(shard))),
      service_(detail::service_access::of(shard)),
      stop_(shard.stop_token()),
      failures_(std::move(policy), *shard_, circuit::counted::records),
      is_async_(is_async),
      window_(options, is_async) {}

/// Calls `body` with the mutex held, and after it what calls the service or destroys user code.
template <class Body>
void dispatcher::change(Body body) {
  copies_.leave_if_copied();
  to_do then{service_->now()};
  std::vector<record_batch> passed;
  bool are_fewer_stuck = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t were_stuck = window_.stuck();
    body(then);
    are_fewer_stuck = window_.stuck() < were_stuck;
    passed = window_.take_passed();
  }
  if (then.notify) service_->notify();
  if (then.timer) start_timer(*then.timer);
  if (!are_fewer_stuck) return;
  observe_in_order([this](time_point now) { return std::optional(window_.stuck(now)); });
}

/// For a thread of the pool. What is thrown ends the session: user code that must not throw.
template <class Body>
void dispatcher::guarded(Body body) noexcept {
  try {
    body();
  } catch (...) {
    auto exception = std::current_exception();
    try {
      change([&](to_do& then) { set_failure(exception, phase::fails, then); });
    } catch (...) {  // NOLINT(bugprone-empty-catch): the next callback throws it
    }
  }
}

// When the callbacks' thread looks again.

bool dispatcher::has_reached(goal awaited) const {
  if (awaited == goal::room) return window_.wants_more(next_bytes_);
  if (awaited == goal::empty_window) return window_.is_empty();
  return awaited == goal::look || window_.running() == 0;
}

std::optional<dispatcher::time_point> dispatcher::request_due() const {
  return window_.first() == requested_ ? std::nullopt : std::optional(last_request_ + pace);
}

std::optional<dispatcher::time_point> dispatcher::next_wake(time_point now) const {
  auto earliest = window_.next_stuck();
  const auto or_at = [&](const std::optional<time_point>& time) {
    if (time && (!earliest || *time < *earliest)) earliest = time;
  };
  if (!may_take(now)) return earliest;
  or_at(window_.next_retry());
  // A runner takes a probe that is due, so only one to be posted needs the wake-up.
  const auto probe = can_begin() ? failures_.next_probe() : std::nullopt;
  if (probe && (*probe > now || runners_wanted() > 0)) or_at(probe);
  return earliest;
}

void dispatcher::notify(to_do& then) {
  waits_until_.reset();
  then.notify = true;
}

/// An open callback that does not wait looks before it waits or ends.
void dispatcher::wake_by(const std::optional<time_point>& time, to_do& then) {
  if (!time || phase_ == phase::over) return;
  if (is_open_) {
    if (waits_until_ && *time < *waits_until_) notify(then);
  } else if (!timer_ || *time < *timer_) {
    timer_ = then.timer = time;
  }
}

/// Its goal is reached, or it has to look at the time of its next checkpoint.
void dispatcher::wake_callback_if_due(to_do& then) {
  if (!waits_until_) return;
  if (has_reached(waits_for_)) return notify(then);
  wake_by(request_due(), then);
}

void dispatcher::start_timer(time_point time) {
  const auto delay = std::chrono::ceil<milliseconds>(time - service_->now());
  std::optional superseded = service_->start_timer(
      std::max(delay, milliseconds(0)), milliseconds(0), [self = weak_from_this(), time] {
        if (const auto alive = self.lock()) alive->on_timer(time);
      });
  {
    // This one is of no use when an earlier time was asked for meanwhile, otherwise the one before.
    const std::lock_guard lock(mutex_);
    if (timer_ == time) std::swap(superseded, timer_id_);
  }
  if (superseded) service_->cancel_timer(*superseded);
}

// Threads of the pool.

void dispatcher::post(void (dispatcher::*function)()) {
  if (!pool_) return;  // join() waits for those that run
  pool_->post([self = weak_from_this(), function] {
    if (const auto alive = self.lock()) ((*alive).*function)();
  });
}

std::size_t dispatcher::runners_wanted() const {
  if (!is_async_) return std::min(options_.lanes - runners_, window_.ready());
  return runners_ == 0 && (!failed_.empty() || window_.can_begin()) ? 1 : 0;
}

void dispatcher::post_runners() {
  if (!works()) return;  // a runner would end at once
  for (std::size_t more = runners_wanted(); more > 0; --more, ++runners_) post(&dispatcher::run);
}

void dispatcher::run() noexcept {
  guarded([&] {
    for (;;) {
      std::optional<window::begun> begun;
      decisions failed;
      change([&](to_do& then) {
        const bool may = may_take(then.now);
        if (may && !failed_.empty()) {
          failed.splice(failed.end(), failed_, failed_.begin());
        } else if (may && window_.can_begin()) {
          const auto probe = failures_.try_begin(then.now);  // none: the circuit is open
          if (probe) begun = window_.begin(then.now, *probe);
        }
        if (begun || !failed.empty()) {
          wake_by(window_.stuck_at(then.now), then);
          // A window that is not full wants more.
          if (window_.ready() == 0) wake_callback_if_due(then);
          return;
        }
        --runners_;
        // While this runner ran, next_wake() left the next probe to it. It is not due now.
        if (may && window_.can_begin()) wake_by(failures_.next_probe(), then);
      });
      if (begun) {
        is_async_ ? start_handler(*begun) : call_handler(*begun);
      } else if (!failed.empty()) {
        decide(failed);
      } else {
        break;
      }
    }
    observe_window(false);
  });
}

void dispatcher::call_handler(const window::begun& one) {
  std::exception_ptr thrown;
  try {
    std::get<record_handler::of_shard> (*handler_)(*one.record, *shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) return complete(one.name);
  decisions of_handler;
  change([&](to_do& then) { of_handler = failed(one.name, std::move(thrown), then); });
  decide(of_handler);
}

/// Of an async_record_handler, whose completion may have been reported, dropped or kept when it
/// throws.
void dispatcher::start_handler(const window::begun& one) {
  std::exception_ptr thrown;
  try {
    std::get<async_record_handler::of_shard> (*handler_)(
        detail::taken_record::completion_of({weak_from_this(), one.name, one.batch, *one.record}),
        *shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) return;
  bool was_complete = false;
  change([&](to_do& then) {
    if (window_.is_with_handler(one.name)) {
      failed_.splice(failed_.end(), failed(one.name, std::move(thrown), then));
      return;
    }
    const auto reported = std::find_if(failed_.begin(), failed_.end(), [&](const decision& each) {
      return each.of.record_number == one.name.record_number;
    });
    was_complete = works() && reported == failed_.end();
    // The completion was most likely dropped, since this was thrown.
    if (reported != failed_.end()) std::swap(reported->made.thrown, thrown);
  });
  if (!was_complete) return;
  service_->log(log_level::warning,
                "the handler of record " + to_string(one.record->position()) +
                    " reported it as complete, and then threw: " + message_of(thrown));
}

dispatcher::decisions dispatcher::failed(const ticket& one, std::exception_ptr thrown,
                                         to_do& then) {
  const auto duration = then.now - window_.began(one);
  decisions made;
  made.push_back(
      {one, duration, {&window_.at(one), &window_.fail(one, then.now), std::move(thrown)}});
  wake_by(window_.stuck_at(then.now), then);
  return made;
}

/// An exception belongs to one thread at a time, so that it is destroyed where it is handled.
void dispatcher::decide(decisions& failed) {
  decision& one = failed.front();
  if (!stop_.stop_requested()) {
    if (service_->is_observed()) {
      service_->observe(
          attempt_event(*one.made.record, one.of.attempt, one.duration, one.made.thrown));
    }
    failures_.judge({&one.made, 1});
  }
  if (one.made.bad_since.empty()) return carry_out(one);
  if (!is_async_) return park(failed);
  change([&](to_do&) {
    to_be_parked_.splice(to_be_parked_.end(), failed);
    if (!std::exchange(is_parking_, true)) post(&dispatcher::run_parker);
  });
}

void dispatcher::run_parker() noexcept {
  guarded([&] {
    for (;;) {
      decisions decided;
      bool goes_on = false;
      change([&](to_do&) {
        decided.swap(to_be_parked_);
        goes_on = is_parking_ = !decided.empty() && works();
      });
      if (!goes_on) return;
      park(decided);
    }
  });
}

/// All at once.
void dispatcher::park(decisions& decided) {
  std::vector<failure> failures;
  change([&](to_do& then) {
    for (decision& one : decided) {
      window_.begin_parking(one.of, then.now);
      failures.push_back(std::move(one.made));
    }
    wake_by(window_.stuck_at(then.now), then);
  });
  failures_.park(failures);
  auto parked = failures.begin();
  for (decision& one : decided) {
    one.made = std::move(*parked++);
    carry_out(one);
  }
}

void dispatcher::carry_out(decision& decided) {
  using outcome = failure::outcome;
  failure& made = decided.made;
  const bool is_late = stop_.stop_requested();  // nothing can be persisted any more
  change([&](to_do& then) {
    if (is_late) {
      window_.leave(decided.of);
    } else if (made.decided == outcome::complete) {
      window_.complete(decided.of);
      if (is_async_) post_runners();  // else the runner that calls this continues
      wake_callback_if_due(then);
    } else if (made.decided == outcome::retry) {
      const auto due = then.now + made.delay;
      window_.retry(decided.of, due);
      wake_by(due, then);
      wake_callback_if_due(then);  // it may have been the last handler that ran
    } else {
      window_.leave(decided.of);
      set_failure(made.thrown,
                  made.decided == outcome::stop ? phase::fails_after_handlers : phase::lease_gone,
                  then);
    }
  });
}

void dispatcher::set_failure(std::exception_ptr& exception, phase kind, to_do& then) {
  if (phase_ == phase::works) {
    phase_ = kind;
    failure_ = std::move(exception);
    wake_by(then.now, then);
  }
  wake_callback_if_due(then);
}

// Reports.

bool dispatcher::may_report(const ticket& one) {
  if (!window_.is_with_handler(one)) return false;
  const bool is_late = phase_ == phase::over || stop_.stop_requested();
  if (is_late) window_.leave(one);
  return !is_late;
}

void dispatcher::complete(const ticket& one) {
  bool has_effect = false;
  bool is_emptied = false;
  std::optional<sequence_position> retried;
  std::optional<observer::record_attempted> observed;
  change([&](to_do& then) {
    has_effect = may_report(one);
    if (!has_effect) return;
    if (one.attempt > 1) retried = window_.at(one).position();
    if (service_->is_observed()) {
      observed = attempt_event(window_.at(one), one.attempt, then.now - window_.began(one), {});
    }
    window_.complete(one);
    if (is_async_) post_runners();  // else the runner that calls this continues
    wake_callback_if_due(then);
    is_emptied = window_.is_empty();
  });
  if (!has_effect) return;
  if (failures_.on_success()) {  // an outage is over
    change([this](to_do&) { post_runners(); });
  }
  if (retried) failures_.on_retry_success(*retried, one.attempt);
  if (observed) service_->observe(std::move(*observed));
  if (is_emptied) observe_window(false);
}

void dispatcher::fail(const ticket& one, std::exception_ptr exception) {
  change([&](to_do& then) {
    if (!may_report(one)) return;
    failed_.splice(failed_.end(), failed(one, std::move(exception), then));
    post_runners();
    wake_callback_if_due(then);
  });
}

void dispatcher::touch(const ticket& one) {
  change([&](to_do& then) {
    window_.touch(one, then.now);
    wake_by(window_.stuck_at(then.now), then);
  });
}

// The callbacks' thread.

/// Without an open callback a timer does what has to be done meanwhile.
template <class Body>
void dispatcher::callback(Body body) {
  {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
  }
  body();  // when it throws, no record is processed any more
  change([this](to_do& then) {
    is_open_ = false;
    waits_until_.reset();
    wake_by(next_wake(then.now), then);
    if (has_failed()) wake_by(then.now, then);
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
      copies_.leave_if_copied();
    }
    std::size_t admitted = 0;
    bool is_full = false;
    do {
      const auto now = service_->now();
      {
        const std::lock_guard lock(mutex_);
        last_take_ = time_point::max();
        admitted += window_.admit(batch, admitted, now, keys);
        post_runners();
        is_full = admitted < batch.size();
        if (is_full) next_bytes_ = batch[admitted].data().size();
      }
      if (is_full) observe_window(true);
      if (!wait(is_full ? goal::room : goal::look, time_point::max())) return;
    } while (is_full);
    if (!batch.empty()) last_admitted_ = batch.back().position();
    request_checkpoint();
    observe_window(false);
  });
}

void dispatcher::end_takes(time_point time) {
  const std::lock_guard lock(mutex_);
  last_take_ = time;
}

void dispatcher::finish() {
  callback([&] {
    end_takes(time_point::max());
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
      if (window_.is_empty()) return;
      rest =
          std::to_string(window_.incomplete()) + ", from " + to_string(window_.oldest().position());
    }
    service_->log(log_level::warning, "shutdown: records that are not complete after " +
                                          std::to_string(options_.drain_timeout.count()) +
                                          " ms: " + rest + " on; they will be delivered again");
  });
}

void dispatcher::end() {
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
  pool.reset();
  handler_.reset();  // a completion that is being reported may keep the dispatcher alive
}

bool dispatcher::wait(goal awaited, time_point deadline) {
  for (;;) {
    const auto now = service_->now();
    auto until = deadline;
    bool has_arrived = false;
    bool is_checkpoint_due = false;
    auto failure = phase::works;
    {
      const std::lock_guard lock(mutex_);
      window_.make_due_ready(now);
      post_runners();
      if (has_failed()) {
        failure = phase_;
        if (failure == phase::fails_after_handlers && awaited != goal::no_handler) {
          awaited = goal::no_handler;
          until = deadline = std::min(deadline, now + options_.drain_timeout);
        }
      }
      has_arrived = has_reached(awaited);
      if (const auto wake = next_wake(now)) until = std::min(until, *wake);
      if (const auto due = request_due()) {
        is_checkpoint_due = *due <= now;
        if (!is_checkpoint_due) until = std::min(until, *due);
      }
      waits_for_ = awaited;
      if (!has_arrived) waits_until_ = until;
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
    service_->wait_until_notified(until);
  }
}

void dispatcher::throw_failure() {
  auto failure = phase::works;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(phase_, phase::over);
  }
  if (failure != phase::lease_gone) request_checkpoint();
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

void dispatcher::request_checkpoint() {
  const auto now = service_->now();
  std::optional<sequence_position> position;
  {
    const std::lock_guard lock(mutex_);
    if (window_.first() == requested_) return;
    requested_ = window_.first();
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
    if (timer_ != due) return;  // an earlier one has taken its place
    timer_.reset();
    timer_id_.reset();
    fails = has_failed();
    if (!fails) {
      window_.make_due_ready(now);
      post_runners();
    }
  }
  // The daemon reads only while a callback is open: to wait for handlers would be of no use. The
  // request for a checkpoint is sent if the next batch is there already.
  if (fails) throw_failure();
  report_stuck();
  observe_window(false);
  change([this](to_do& then) { wake_by(next_wake(then.now), then); });
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
    for (const stuck_report& one : reports) service_->observe(one.event);
  }
  for (const stuck_report& one : reports) service_->log(log_level::warning, one.text);
  if (reports.empty() || !options_.leave_when_stuck) return;
  auto why = std::make_exception_ptr(std::runtime_error(
      "the handler of record " + reports.front().record + " is stuck (leave_when_stuck)"));
  change([&](to_do& then) { set_failure(why, phase::fails, then); });
}

// Observers.

/// An event leaves while observing_ is locked: then it is true, and follows the ones before it.
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

/// When the window has filled or emptied, and once a second in between.
void dispatcher::observe_window(bool is_full) {
  if (!service_->is_observed()) return;
  observe_in_order([&](time_point now) -> std::optional<observer::window_changed> {
    const bool is_emptied = window_.is_empty() && !was_empty_;
    if (!is_full && !is_emptied && now - last_event_ < pace) return std::nullopt;
    last_event_ = now;
    was_empty_ = window_.is_empty();
    observer::window_changed event{window_.incomplete(), window_.incomplete_bytes(), std::nullopt,
                                   window_.watermark()};
    if (!was_empty_) event.oldest = window_.oldest_delivery();
    return event;
  });
}

}  // namespace kclxx::processing
