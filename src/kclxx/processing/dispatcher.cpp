// SPDX-License-Identifier: Apache-2.0
#include "processing/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/duration.hpp"
#include "processing/taken_record.hpp"
#include "processing/thread_backtrace.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

namespace {

/// Between checkpoint requests while a callback waits, and between events about the window.
constexpr std::chrono::seconds pace{1};

parallel_options valid(parallel_options options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("parallel_options: ") + what);
  };
  require(options.lanes > 0, "lanes is 0");
  require(options.window_records > 0, "window_records is 0");
  require(options.window_bytes > 0, "window_bytes is 0");
  require(options.stuck_after >= milliseconds(0), "stuck_after is negative");
  require(options.drain_timeout >= milliseconds(0), "drain_timeout is negative");
  options.drain_timeout = detail::clamped(options.drain_timeout);
  return options;
}

std::string text_of(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
}

std::string key_of(const record& one) { return std::string(one.partition_key().value_or("")); }

}  // namespace

dispatcher::dispatcher(handler with, failure_policy policy, const parallel_options& options,
                       const shard_context& shard)
    : options_(valid(options)),
      shard_(shard),
      service_(shard.service()),
      stop_(shard.stop_token()),
      failures_(std::move(policy), shard),
      is_async_(std::holds_alternative<async_record_handler::of_shard>(with)),
      handler_(std::move(with)),
      queue_(options.order, options.window_records, options.window_bytes),
      handlers_(options.stuck_after) {}

// --- Under the mutex ---

bool dispatcher::has_reached(goal what) const {
  switch (what) {
    case goal::none:
      return true;
    case goal::room:
      return queue_.wants_more(*next_);
    case goal::empty_window:
      return queue_.window().is_empty();
    case goal::no_handler:
      return handlers_.running() == 0;
  }
  return true;
}

std::optional<dispatcher::time_point> dispatcher::next_wake() const {
  const auto retry = is_over() ? std::nullopt : queue_.next_due();
  const auto stuck = handlers_.next_due();
  if (!retry || !stuck) return retry ? retry : stuck;
  return std::min(*retry, *stuck);
}

void dispatcher::post_lanes() {
  if (is_over() || !pool_) return;
  std::size_t more = std::min(options_.lanes - lanes_, queue_.ready());
  if (is_async_) {
    const bool has_work =
        !failed_.empty() || (queue_.ready() > 0 && handlers_.size() < options_.lanes);
    more = lanes_ == 0 && has_work ? 1 : 0;
  }
  for (; more > 0; --more, ++lanes_) {
    pool_->post([self = weak_from_this()] {
      if (const auto alive = self.lock()) alive->run_lane();
    });
  }
}

std::optional<dispatcher::work> dispatcher::take_work(time_point now) {
  if (is_over()) return std::nullopt;
  if (!failed_.empty()) {
    work next = std::move(failed_.front());
    failed_.pop_front();
    return next;
  }
  if (handlers_.size() >= options_.lanes) return std::nullopt;
  const auto which = queue_.take();
  if (!which) return std::nullopt;
  work next;
  next.what = &queue_.window().at(*which);
  next.began = now;
  const auto attempts = attempts_.find(*which);
  if (attempts != attempts_.end()) next.attempt = attempts->second.count + 1;
  if (is_async_) next.batch = queue_.window().batch_of(*which);
  next.with = handlers_.add(*which, next.attempt, now, is_async_ ? 0 : accept_backtraces());
  return next;
}

void dispatcher::remove(const ticket& one, follow_up& then) {
  const bool was_stuck = handlers_.stuck() > 0;
  handlers_.remove(one);
  if (was_stuck && handlers_.stuck() == 0) then.is_unstuck = true;
}

void dispatcher::complete(arrival which) {
  if (!attempts_.empty()) attempts_.erase(which);
  queue_.complete(which);
  if (is_async_) post_lanes();  // else the lane that calls this continues
}

void dispatcher::look(time_point now, follow_up& then) {
  if (waits_for_ == goal::none) return;
  const bool has_failed = failure_ && waits_for_ != goal::no_handler;
  const bool is_checkpoint_due =
      now - requested_at_ >= pace && queue_.window().watermark() != requested_;
  if (!has_failed && !is_checkpoint_due && !has_reached(waits_for_)) return;
  waits_for_ = goal::none;
  then.notify = true;
}

void dispatcher::arm(const std::optional<time_point>& when, follow_up& then) {
  if (!when || is_callback_open_ || has_ended_ || (timer_ && *timer_ <= *when)) return;
  timer_ = then.timer = when;
}

void dispatcher::wake_before(const std::optional<time_point>& when, follow_up& then) {
  if (!when || waits_for_ == goal::none || waits_until_ <= *when) return;
  waits_for_ = goal::none;
  then.notify = true;
}

void dispatcher::set_failure(std::exception_ptr why, failure_kind kind, time_point now,
                             follow_up& then) {
  if (!failure_) {
    failure_ = std::move(why);
    failure_kind_ = kind;
  }
  look(now, then);
  arm_for_failure(now, then);
}

void dispatcher::arm_for_failure(time_point now, follow_up& then) {
  if (failure_ && !is_failure_thrown_) arm(now, then);
}

void dispatcher::clear_if_unused() {
  if (!has_ended_ || lanes_ > 0) return;
  queue_.clear();
  handlers_.clear();
  attempts_.clear();
  failed_.clear();
}

std::string dispatcher::describe(arrival which) const {
  const record& one = queue_.window().at(which);
  std::string text = to_string(one.position());
  if (const auto key = one.partition_key())
    text.append(" (partition key '").append(*key).append("'");
  else
    text += " (no partition key";
  return text + ", attempt " + std::to_string(attempt_of(which)) + ")";
}

int dispatcher::attempt_of(arrival which) const {
  const auto found = attempts_.find(which);
  return found == attempts_.end() ? 1 : found->second.count + 1;
}

// --- Without it ---

void dispatcher::carry_out(const follow_up& then) {
  if (then.notify) service_->notify();
  if (then.timer) start_timer(*then.timer);
  if (then.is_unstuck) service_->observe(handlers_stuck{});
}

void dispatcher::start_timer(time_point when) {
  const auto delay = std::chrono::ceil<milliseconds>(when - service_->now());
  std::optional superseded(service_->start_timer(std::max(delay, milliseconds(0)), milliseconds(0),
                                                 [self = weak_from_this(), when] {
                                                   if (const auto alive = self.lock()) {
                                                     alive->on_timer(when);
                                                   }
                                                 }));
  {
    const std::lock_guard lock(mutex_);
    if (timer_ == when) std::swap(superseded, timer_id_);  // else another one is earlier
  }
  if (superseded) service_->cancel_timer(*superseded);
}

// --- Lanes ---

void dispatcher::run_lane() noexcept {
  try {
    for (;;) {
      const auto now = service_->now();
      std::optional<work> next;
      follow_up then;
      {
        const std::lock_guard lock(mutex_);
        next = take_work(now);
        if (next) {
          const auto stuck_at = handlers_.stuck_at(now);
          arm(stuck_at, then);
          wake_before(stuck_at, then);
        } else {
          --lanes_;
          look(now, then);
          clear_if_unused();
        }
      }
      carry_out(then);
      if (!next) break;
      if (next->failed) {
        decide(*next, std::move(next->failed));
      } else {
        call(*next);
      }
    }
    observe_window(false);
  } catch (...) {  // memory is exhausted, or a thread of the service's
    give_up(std::current_exception());
  }
}

void dispatcher::give_up(const std::exception_ptr& why) noexcept {
  try {
    const auto now = service_->now();
    follow_up then;
    {
      const std::lock_guard lock(mutex_);
      set_failure(why, failure_kind::at_once, now, then);
    }
    carry_out(then);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next callback throws it
  }
}

void dispatcher::call(const work& one) {
  std::exception_ptr thrown;
  if (is_async_) {
    try {
      std::get<async_record_handler::of_shard> (*handler_)(
          completion(std::make_unique<detail::taken_record>(weak_from_this(), one.with, one.batch,
                                                            *one.what, one.attempt)),
          shard_);
    } catch (...) {
      handler_threw(one, std::current_exception());
    }
    return;
  }
  try {
    std::get<record_handler::of_shard> (*handler_)(*one.what, shard_);
  } catch (...) {
    thrown = std::current_exception();
  }
  const auto now = service_->now();
  if (service_->is_observed()) {
    service_->observe(attempt_event(*one.what, one.attempt, now - one.began, thrown));
  }
  if (thrown) return decide(one, std::move(thrown));
  failures_.on_success();
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    const arrival which = handlers_.find(one.with)->which;
    remove(one.with, then);
    complete(which);
    look(now, then);
  }
  carry_out(then);
}

/// Of an async_record_handler, whose completion may have been reported, dropped or kept.
void dispatcher::handler_threw(const work& one, std::exception_ptr thrown) {
  const auto now = service_->now();
  {
    const std::lock_guard lock(mutex_);
    auto* const attempt = handlers_.find(one.with);
    if (attempt != nullptr && !attempt->has_ended) {
      attempt->has_ended = true;
      failed_.push_back(one);
      failed_.back().failed = std::move(thrown);
      failed_.back().ended = now;
      return;
    }
    const auto reported = std::find_if(failed_.begin(), failed_.end(), [&](const work& other) {
      return other.with.serial == one.with.serial;
    });
    if (reported != failed_.end()) {  // most likely dropped, since this was thrown
      reported->failed = std::move(thrown);
      return;
    }
    if (is_over()) return;
  }
  service_->log(log_level::warning,
                "the handler of record " + to_string(one.what->position()) +
                    " reported it as complete, and then threw: " + message_of(thrown));
}

/// An exception belongs to one thread at a time, so that it is destroyed where it is handled.
void dispatcher::decide(const work& one, std::exception_ptr thrown) {
  failed_attempts attempts;
  arrival which = 0;
  {
    const std::lock_guard lock(mutex_);
    auto* const attempt = handlers_.find(one.with);
    if (attempt == nullptr) return;
    attempt->has_ended = true;
    which = attempt->which;
    const auto found = attempts_.find(which);
    if (found != attempts_.end()) attempts = found->second;
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
  const auto now = service_->now();
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    remove(one.with, then);
    if (is_late) {
      look(now, then);
    } else if (decision.what == kind::complete) {
      complete(which);
      look(now, then);
    } else if (decision.what == kind::retry) {
      attempts_[which] = std::move(attempts);
      queue_.retry_at(which, now + decision.delay);
      wake_before(now + decision.delay, then);
      arm(now + decision.delay, then);
    } else {
      set_failure(
          std::move(thrown),
          decision.what == kind::stop ? failure_kind::after_handlers : failure_kind::lease_gone,
          now, then);
    }
  }
  carry_out(then);
}

// --- Reports ---

void dispatcher::complete(const ticket& one) {
  const auto now = service_->now();
  std::optional<record_attempted> observed;
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    const auto* const found = handlers_.find(one);
    if (found == nullptr || found->has_ended || has_ended_ || stop_.stop_requested()) return;
    const auto attempt = *found;
    if (service_->is_observed()) {
      observed = attempt_event(queue_.window().at(attempt.which), attempt.number,
                               now - attempt.began, nullptr);
    }
    remove(one, then);
    complete(attempt.which);
    look(now, then);
  }
  failures_.on_success();
  carry_out(then);
  if (observed) service_->observe(std::move(*observed));
}

void dispatcher::fail(const ticket& one, std::exception_ptr why) {
  const auto now = service_->now();
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    auto* const found = handlers_.find(one);
    if (found == nullptr || found->has_ended || has_ended_ || stop_.stop_requested()) return;
    found->has_ended = true;
    work failed;
    failed.with = one;
    failed.what = &queue_.window().at(found->which);
    failed.attempt = found->number;
    failed.began = found->began;
    failed.ended = now;
    failed.failed = std::move(why);
    failed_.push_back(std::move(failed));
    post_lanes();
    look(now, then);
  }
  carry_out(then);
}

void dispatcher::touch(const ticket& one) {
  const auto now = service_->now();
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    const bool was_stuck = handlers_.stuck() > 0;
    handlers_.touch(one, now);
    then.is_unstuck = was_stuck && handlers_.stuck() == 0;
  }
  carry_out(then);
}

// --- The callbacks' thread ---

/// Without an open callback a timer does what has to be done meanwhile.
template <class Body>
void dispatcher::callback(Body body) {
  const auto set_open = [this](bool is_open) {
    is_callback_open_ = is_open;
    waits_for_ = goal::none;
  };
  {
    const std::lock_guard lock(mutex_);
    set_open(true);
  }
  try {
    body();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    set_open(false);
    throw;
  }
  const auto now = service_->now();
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    set_open(false);
    arm(next_wake(), then);
    arm_for_failure(now, then);
  }
  carry_out(then);
}

void dispatcher::process(const record_batch& batch, const checkpointer& with) {
  callback([&] {
    throw_failure(with);
    request_checkpoint(with);
    if (!pool_ && !batch.empty()) {
      auto pool = service_->make_thread_pool(is_async_ ? 1 : options_.lanes);
      const std::lock_guard lock(mutex_);
      pool_ = std::move(pool);
    }
    for (std::size_t offset = 0;;) {
      const auto now = service_->now();
      {
        const std::lock_guard lock(mutex_);
        if (has_ended_ || stop_.stop_requested()) return;
        offset += queue_.admit(batch, offset, now);
        post_lanes();
        next_ = offset < batch.size() ? &batch[offset] : nullptr;
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
    const bool is_empty = wait(goal::empty_window, service_->now() + options_.drain_timeout, with);
    request_checkpoint(with);
    if (is_empty || stop_.stop_requested()) return;
    const auto rest = state();
    if (!rest->oldest) return;
    service_->log(log_level::warning, "shutdown: records that are not complete after " +
                                          text_of(options_.drain_timeout) + ": " +
                                          std::to_string(rest->records) + ", from " +
                                          to_string(rest->oldest->position) +
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
  handler_.reset();
  const std::lock_guard lock(mutex_);
  is_joined_ = true;
  lanes_ = 0;  // those that were posted and did not begin are dropped
  clear_if_unused();
}

bool dispatcher::wait(goal what, const std::optional<time_point>& deadline,
                      const checkpointer& with) {
  for (;;) {
    const auto now = service_->now();
    auto until = time_point::max();
    bool has_arrived = false;
    {
      const std::lock_guard lock(mutex_);
      queue_.make_due_ready(now);
      post_lanes();
      has_arrived = has_reached(what);
      waits_for_ = has_arrived ? goal::none : what;  // no lane looks at it afterwards
      until = next_wake().value_or(until);
      if (deadline) until = std::min(until, *deadline);
      waits_until_ = until;
    }
    if (what != goal::no_handler) throw_failure(with);
    if (has_arrived) return true;
    request_checkpoint(with);
    report_stuck();
    if (stop_.stop_requested() || (deadline && now >= *deadline)) return false;
    service_->wait_until_notified(until);
  }
}

void dispatcher::throw_failure(const checkpointer& with) {
  failure_kind kind{};
  {
    const std::lock_guard lock(mutex_);
    if (!failure_ || is_failure_thrown_) return;
    kind = failure_kind_;
  }
  if (kind == failure_kind::after_handlers) {
    static_cast<void>(wait(goal::no_handler, service_->now() + options_.drain_timeout, with));
  }
  if (kind != failure_kind::lease_gone) request_checkpoint(with);
  std::exception_ptr why;
  {
    const std::lock_guard lock(mutex_);
    is_failure_thrown_ = true;
    why = failure_;
  }
  std::rethrow_exception(why);
}

void dispatcher::request_checkpoint(const checkpointer& with) {
  const auto now = service_->now();
  std::optional<sequence_position> position;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.window().watermark() == requested_) return;
    requested_ = queue_.window().watermark();
    requested_at_ = now;
    position = queue_.window().position();
  }
  with.async_checkpoint(*position);
}

void dispatcher::on_timer(time_point which) {
  const auto now = service_->now();
  bool has_failed = false;
  {
    const std::lock_guard lock(mutex_);
    if (timer_ != which) return;  // an earlier one took its place
    timer_.reset();
    timer_id_.reset();
    has_failed = failure_ && !is_failure_thrown_;
    if (!has_failed) {
      queue_.make_due_ready(now);
      post_lanes();
    }
  }
  // The daemon reads only while a callback is open: to wait for handlers would be of no use.
  if (has_failed) {
    if (failure_kind_ != failure_kind::lease_gone) request_checkpoint(shard_.get_checkpointer());
    const std::lock_guard lock(mutex_);
    is_failure_thrown_ = true;
    std::rethrow_exception(failure_);
  }
  report_stuck();
  observe_window(false);
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    arm(next_wake(), then);
  }
  carry_out(then);
}

void dispatcher::report_stuck() {
  const auto now = service_->now();
  std::vector<ticket> due;
  {
    const std::lock_guard lock(mutex_);
    due = handlers_.take_due(now);
  }
  // A thread that does not answer costs time: the others are not asked then.
  bool is_answering = true;
  for (const ticket& one : due) is_answering = report_stuck(one, now, is_answering);
}

bool dispatcher::report_stuck(const ticket& one, time_point now, bool asks_thread) {
  std::string record_text;
  std::string oldest_text;
  handlers_stuck event;
  int thread = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto* const attempt = handlers_.find(one);
    if (attempt == nullptr) return asks_thread;
    const record& what = queue_.window().at(attempt->which);
    record_text = describe(attempt->which);
    oldest_text = describe(queue_.window().watermark()) + ", delivered " +
                  text_of(now - queue_.window().oldest_arrival()) + " ago";
    event = {handlers_.stuck(),
             what.position(),
             key_of(what),
             attempt->number,
             std::chrono::duration_cast<milliseconds>(now - attempt->began),
             {}};
    thread = attempt->thread;
  }
  if (asks_thread) event.where = backtrace_of(thread);
  const bool has_answered = !event.where.empty() || is_async_;
  {
    const std::lock_guard lock(mutex_);
    if (handlers_.find(one) == nullptr)
      return has_answered;  // that was the backtrace of what followed
  }
  const std::string text = "a handler is stuck: it has had record " + record_text + " for " +
                           text_of(event.age) + "; the oldest record that is not complete is " +
                           oldest_text + "; " +
                           (is_async_             ? "its completion has no thread"
                            : event.where.empty() ? "where its thread stands is not known"
                                                  : "its thread is in " + event.where);
  service_->log(log_level::warning, text);
  service_->observe(std::move(event));
  if (options_.when_stuck != when_stuck::leave) return has_answered;
  follow_up then;
  {
    const std::lock_guard lock(mutex_);
    set_failure(std::make_exception_ptr(std::runtime_error("the handler of record " + record_text +
                                                           " is stuck (when_stuck::leave)")),
                failure_kind::at_once, now, then);
  }
  carry_out(then);
  return has_answered;
}

// --- What is seen ---

std::optional<window_state> dispatcher::state() const {
  const auto now = service_->now();
  const std::lock_guard lock(mutex_);
  if (is_joined_) return std::nullopt;
  const completion_window& window = queue_.window();
  window_state result{shard_id_,           window.position(),         window.highest_complete(),
                      window.incomplete(), window.incomplete_bytes(), window.size(),
                      std::nullopt};
  if (!window.is_empty()) {
    const arrival oldest = window.watermark();
    const record& what = window.at(oldest);
    result.oldest = {what.position(), key_of(what), attempt_of(oldest),
                     now - window.oldest_arrival(), handlers_.has(oldest)};
  }
  return result;
}

void dispatcher::observe_window(bool is_due) {
  if (!service_->is_observed()) return;
  const auto now = service_->now();
  window_changed event;
  {
    const std::lock_guard lock(mutex_);
    const completion_window& window = queue_.window();
    const bool is_emptied = window.is_empty() && !was_window_observed_empty_;
    if (!is_due && !is_emptied && now - window_observed_at_ < pace) return;
    window_observed_at_ = now;
    was_window_observed_empty_ = window.is_empty();
    event = {window.incomplete(), window.incomplete_bytes(), std::nullopt, window.position()};
    if (!window.is_empty()) event.oldest = window.oldest_arrival();
  }
  service_->observe(std::move(event));
}

}  // namespace kclxx::processing
