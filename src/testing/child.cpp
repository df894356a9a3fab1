// SPDX-License-Identifier: Apache-2.0
#include "testing/child.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <future>
#include <stdexcept>
#include <utility>
#include <variant>

#include <kclxx/error.hpp>

namespace kclxx::testing {

namespace {

/// What a stop_callback asks for is too late; an exception there would end the test's process.
thread_local bool is_stop_thread = false;

/// A killed process runs no destructor. Kept reachable, so that no leak is reported; each thread of
/// a test may have a daemon.
template <class Kept>
void keep_undestroyed(Kept what) {
  struct kept {
    Kept what;
    kept* next;
  };
  static std::atomic<kept*> newest = nullptr;
  auto* const added = new kept{std::move(what), newest};
  while (!newest.compare_exchange_weak(added->next, added)) {
  }
}

}  // namespace

child::child(configuration with, std::shared_ptr<virtual_clock> time, std::shared_ptr<usage> usage,
             surroundings around)
    : clock_(std::move(time)),
      usage_(std::move(usage)),
      around_(std::move(around)),
      max_line_length_(with.options.max_line_length),
      log_function_(with.options.log),
      log_level_(with.options.logging.level),
      observers_(with.options.observers),
      context_(std::move(with.context)),
      driver_(std::move(with.make_processor), with.options, false, with.seed, *this) {
  context_.stop_token = stop_.get_token();
  set_names();
}

child::~child() {
  if (stop_thread_.joinable()) stop_thread_.join();
}

std::error_code child::write(std::string_view lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    around_.written(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  return {};
}

void child::arm(session::timer which, std::chrono::milliseconds after) {
  session_timers_.at(static_cast<std::size_t>(which)) = clock_->now() + after;
}

void child::call(session::call what) {
  if (what.what == protocol::action_kind::initialize) {
    shard_id_ = what.shard_id;
    set_names();
  }
  call_ = std::move(what);
}

void child::wake(session::waiter_id waiter, std::error_code result) {
  const auto found = waiting_.find(waiter);
  if (found != waiting_.end()) found->second = result;
}

void child::left(exit_status status) {
  call_.reset();
  session_timers_ = {};
  timers_.end();
  around_.left(status);
}

void child::write_log(log_level level, std::string text,
                      const std::optional<sequence_position>& position) {
  const log_entry entry{level, shard_id_, std::move(text), position};
  around_.log(entry);
  if (!log_function_ || level < log_level_) return;
  tasks_.push_back([this, entry] {
    try {
      log_function_(entry);
    } catch (const process_ended&) {
      throw;
    } catch (...) {  // NOLINT(bugprone-empty-catch): as in production, where stderr has the line
    }
  });
}

void child::run_handler(checkpoint_handler handler, std::error_code result) {
  // std::function must be copyable.
  auto shared = std::make_shared<checkpoint_handler>(std::move(handler));
  tasks_.push_back([this, shared, result] {
    try {
      (*shared)(result);
    } catch (const process_ended&) {
      throw;
    } catch (...) {
      thrown_ = std::current_exception();
      driver_.on_user_code_threw("a checkpoint handler", thrown_);
    }
  });
}

void child::set_names() {
  names_ = std::make_shared<shard_names>(
      shard_names{shard_id_, context_.stream_name, context_.application_name, context_.worker_id});
}

void child::observe(shard_event event) noexcept {
  if (observers_.empty() || is_killed_) return;
  const event_source source{names_, clock_->now(), clock_->date()};
  tasks_.push_back([this, source, event = std::move(event)] { call_observers(source, event); });
}

void child::call_observers(const event_source& source, const shard_event& event) {
  for (const auto& each : observers_) {
    try {
      each->on_event(source, event);
    } catch (const process_ended&) {
      throw;
    } catch (...) {
      if (!std::exchange(has_observer_thrown_, true)) {
        driver_.on_log(log_level::warning, driver::observer_threw(std::current_exception()));
      }
    }
  }
}

/// As in production, not on a running callback's own thread, where a stop_callback could wait for
/// what the callback holds. Without such a wait it has run when this returns.
void child::request_stop() {
  if (!is_in_user_code_) {
    tasks_.push_front([this] { stop_.request_stop(); });
    return;
  }
  std::promise<void> done;
  const std::future<void> is_done = done.get_future();
  stop_thread_ = std::thread([source = stop_, finished = std::move(done)]() mutable {
    is_stop_thread = true;
    source.request_stop();
    finished.set_value();
  });
  while (!stop_.stop_requested()) std::this_thread::yield();  // also on a busy machine
  is_done.wait_for(std::chrono::milliseconds(100));
}

void child::settle() {
  while (!status() && !is_killed_) {
    if (!unread_.empty() && !driver_.is_reading_paused()) {
      const std::string line = std::move(unread_.front());
      unread_.pop_front();
      read(line);
    } else if (unread_.empty() && std::exchange(has_input_ended_, false)) {
      driver_.on_end_of_input(false);
    } else {
      break;
    }
  }
}

void child::read(const std::string& line) {
  if (line.size() > max_line_length_) {
    driver_.on_line(decoder_.too_long(line.data(), line.size(), max_line_length_));
    return;
  }
  auto memory = std::make_shared<driver::batch_memory>();
  memory->line.grow(line.size() + 1);
  std::memcpy(memory->line.data(), line.data(), line.size());
  auto decoded = decoder_.decode(std::move(memory), line.size());
  if (decoder_.take_utf8_warning()) driver_.on_utf8_warning();
  driver_.on_line(std::move(decoded));
}

bool child::run_user_code() {
  if (is_killed_) return false;
  timers_.take_dropped().clear();  // between the events of the driver
  if (!tasks_.empty()) {
    run_tasks();
  } else if (const auto timer = timers_.take_due(clock_->now())) {
    run_timer(timer);
  } else if (call_) {
    run_callback();
  } else {
    return false;
  }
  return true;
}

void child::run_tasks() {
  while (!tasks_.empty() && !is_killed_) {
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    const bool was_in_task = std::exchange(is_in_task_, true);  // a task that waits runs others
    try {
      task();
    } catch (const process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended the task
    }
    is_in_task_ = was_in_task;
  }
}

void child::run_callback() {
  session::call what = *std::exchange(call_, std::nullopt);
  is_in_user_code_ = true;
  patience_ = clock_->now() + session::callback_patience;
  if (driver_.is_due(what)) around_.callback_begins(what.what);
  shard_context::fields fields = context_;
  fields.service = shared_from_this();
  const auto result =
      driver_.run_callback(std::move(what), checkpointer(shared_from_this()), fields);
  end_user_code();
  if (is_killed_) return;
  if (status() == exit_status::callback_stuck)
    return keep_undestroyed(driver_.processor().abandon());
  if (result.thrown && !result.is_lease_gone) thrown_ = result.thrown;
  driver_.on_callback_done(result);
}

void child::run_timer(const driver::shard_timers::function& timer) {
  is_in_user_code_ = is_in_timer_ = true;
  std::exception_ptr thrown;
  try {
    (*timer)();
  } catch (const process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended the timer
  } catch (...) {
    thrown = thrown_ = std::current_exception();
  }
  end_user_code();
  if (thrown) driver_.on_user_code_threw("a timer", thrown);
}

void child::end_user_code() {
  is_in_user_code_ = is_in_timer_ = false;
  patience_.reset();
  if (stop_thread_.joinable()) stop_thread_.join();
}

void child::leave_callback_of_the_dead() const {
  if (is_in_user_code_ && status() == exit_status::callback_stuck) throw process_ended();
  if (is_running_user_code() && is_killed_) throw process_ended();
}

void child::kill() {
  if (status()) return finish();
  keep_undestroyed(driver_.processor().abandon());
  is_killed_ = true;
  tasks_.clear();
  timers_.end();
  keep_undestroyed(timers_.take_dropped());
}

void child::finish() {
  stop_.request_stop();       // for threads that the processor's destructor waits for
  if (status()) run_tasks();  // handlers may use the processor
  driver_.processor().destroy();
  is_killed_ = true;
  tasks_.clear();
  timers_.end();
  timers_.take_dropped().clear();
}

std::optional<child::time_point> child::next_session_timer() const {
  std::optional<time_point> first = patience_;
  for (const auto& due : session_timers_) {
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

std::optional<child::time_point> child::next_timer() const {
  const auto of_session = next_session_timer();
  if (is_in_user_code_) return of_session;
  const auto of_user = timers_.next_due();
  if (!of_session || !of_user) return of_session ? of_session : of_user;
  return std::min(of_session, of_user);
}

void child::fire_timers() {
  if (patience_ && *patience_ <= clock_->now()) {
    patience_.reset();
    driver_.on_callback_lasts();
  }
  for (std::size_t which = 0; which < session_timers_.size(); ++which) {
    auto& due = session_timers_.at(which);
    if (!due || *due > clock_->now()) continue;
    due.reset();
    driver_.on_timer(static_cast<session::timer>(which));
  }
}

/// Time passes for user code that waits.
void child::move_to(time_point time) {
  clock_->move_to(time);
  fire_timers();
  settle();
  if (!is_killed_) run_tasks();
  leave_callback_of_the_dead();
}

std::error_code child::checkpoint(const std::optional<sequence_position>& position,
                                  const std::optional<time_point>& deadline) {
  if (is_stop_thread) return errc::daemon_gone;
  usage_->require_owner("checkpoint()");
  leave_callback_of_the_dead();
  if (is_killed_) return errc::daemon_gone;
  if (is_in_timer_ && !is_in_task_) return status() ? errc::daemon_gone : errc::not_allowed_here;
  const session::waiter_id id = driver_.next_waiter();
  waiting_.emplace(id, std::nullopt);
  driver_.on_checkpoint(id, position, is_callback());
  settle();
  while (!waiting_.at(id)) {
    const auto timer = next_session_timer();
    if (deadline && (!timer || *deadline <= *timer)) {
      clock_->move_to(*deadline);
      return time_out(id);
    }
    if (!timer) refuse_endless_wait(id, position);
    move_to(*timer);
  }
  const std::error_code result = *waiting_.at(id);
  waiting_.erase(id);
  return result;
}

std::error_code child::time_out(session::waiter_id id) {
  waiting_.erase(id);
  driver_.on_deadline(id);
  settle();
  return errc::timed_out;
}

void child::refuse_endless_wait(session::waiter_id id,
                                const std::optional<sequence_position>& position) {
  static_cast<void>(time_out(id));
  const std::string why =
      "checkpoint(" + (position ? to_string(*position) : std::string()) +
      ") waits for the daemon, which reads only while a callback is open, and none is: on this one "
      "thread it would never return. Use async_checkpoint(), or checkpoint_until()";
  if (is_callback()) usage_->refuse_in_callback(why);
  throw std::logic_error(why);
}

void child::async_checkpoint(const std::optional<sequence_position>& position,
                             checkpoint_handler handler) {
  if (is_stop_thread) return;
  usage_->require_owner("async_checkpoint()");
  leave_callback_of_the_dead();
  if (is_killed_) return;
  driver_.on_async_checkpoint(position, std::move(handler), is_callback());
  settle();
}

bool child::sleep_until(time_point deadline) {
  usage_->require_owner("sleep_until()");
  leave_callback_of_the_dead();
  while (!is_killed_ && !stop_.stop_requested() && clock_->now() < deadline) {
    const auto timer = next_session_timer();
    move_to(timer ? std::min(*timer, deadline) : deadline);
  }
  return !stop_requested();
}

void child::wait_until_notified(time_point deadline) {
  usage_->require_owner("wait_until_notified()");
  leave_callback_of_the_dead();
  run_tasks();
  while (!is_notified_ && !stop_requested() && clock_->now() < deadline) {
    const auto timer = next_session_timer();
    if (!timer && deadline == time_point::max()) refuse_endless_notification();
    move_to(timer ? std::min(*timer, deadline) : deadline);
  }
  is_notified_ = false;
  leave_callback_of_the_dead();
}

void child::refuse_endless_notification() {
  usage_->refuse_in_callback(
      "a callback waits for a notification, and nothing can bring it: on this one thread it would "
      "never return");
}

/// Its functions are tasks of the child.
class child::pool final : public thread_pool {
 public:
  explicit pool(std::weak_ptr<child> owner) : owner_(std::move(owner)) {}

  void post(std::function<void()> function) override {
    const auto owner = owner_.lock();
    if (!owner || owner->is_killed_) return;
    owner->tasks_.push_back([function = std::move(function), alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) function();
    });
  }

 private:
  std::weak_ptr<child> owner_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

std::unique_ptr<thread_pool> child::make_thread_pool(std::size_t) {
  return std::make_unique<pool>(weak_from_this());
}

void child::log(log_level level, const std::string& text,
                const std::optional<sequence_position>& position) {
  usage_->require_owner("log()");
  leave_callback_of_the_dead();
  if (!is_killed_) driver_.on_log(level, text, position);
}

child::timer_id child::start_timer(std::chrono::milliseconds delay,
                                   std::chrono::milliseconds period,
                                   std::function<void()> function) {
  usage_->require_owner("a timer");
  leave_callback_of_the_dead();
  return timers_.start(clock_->now() + delay, period, std::move(function));
}

}  // namespace kclxx::testing
