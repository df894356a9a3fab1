// SPDX-License-Identifier: Apache-2.0
#include "testing/virtual_host.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <kclxx/error.hpp>

namespace kclxx::testing {

namespace {

/// A killed process runs no destructor. The value stays reachable, so that no leak is reported.
/// Each thread of a test may have a worker, so the list is shared.
template <class Kept>
void keep_undestroyed(Kept value) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<Kept>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(value));
}

}  // namespace

class virtual_host::pool final : public detail::thread_pool {
 public:
  pool(std::weak_ptr<virtual_host> owner, std::shared_ptr<usage> usage,
       std::shared_ptr<group> group)
      : owner_(std::move(owner)), usage_(std::move(usage)), group_(std::move(group)) {}
  ~pool() override {
    if (const auto owner = owner_.lock()) owner->join(group_);
  }

  void post(std::function<void()> function) override {
    if (virtual_threads::is_stop_thread()) return;
    if (!usage_->is_owner("a completion, or thread_pool::post(),")) return;
    if (const auto owner = owner_.lock()) owner->threads_->post(*group_, std::move(function));
  }

 private:
  std::weak_ptr<virtual_host> owner_;
  std::shared_ptr<usage> usage_;
  std::shared_ptr<group> group_;
};

virtual_host::virtual_host(configuration settings, std::shared_ptr<virtual_clock> time,
                           std::shared_ptr<usage> usage, std::shared_ptr<idle_time> idle,
                           surroundings& around)
    : clock_(std::move(time)),
      usage_(std::move(usage)),
      idle_(std::move(idle)),
      around_(around),
      seed_(settings.seed),
      context_(std::move(settings.names)),
      driver_(std::move(settings.make_processor), settings.options, settings.seed, *this) {
  context_.stop_token = stop_.get_token();
  set_names();
}

std::error_code virtual_host::write(std::string_view lines) {
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin);
    around_.written(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  return {};
}

void virtual_host::arm(session::timer timer, std::chrono::milliseconds delay) {
  session_timers_.at(static_cast<std::size_t>(timer)) = clock_->now() + delay;
}

void virtual_host::call(session::call call) {
  if (call.kind == protocol::action_kind::initialize) {
    shard_id_ = call.shard_id;
    set_names();
  }
  call_ = std::move(call);
}

void virtual_host::wake(session::waiter_id waiter, std::error_code result) {
  const auto found = waiting_.find(waiter);
  if (found != waiting_.end()) found->second = result;
}

void virtual_host::left(exit_status status) {
  call_.reset();
  session_timers_ = {};
  daemon_end_.reset();
  timers_.end();
  around_.left(status);
}

void virtual_host::write_log(log_level level, std::string text,
                             const std::optional<sequence_position>& position) {
  const log_entry entry{level, shard_id_, std::move(text), position};
  around_.log(entry);
  const run_options& options = driver_.options();
  if (!options.log || level < options.logging.level) return;
  threads_->post(*log_lines_, [this, entry] {
    try {
      driver_.options().log(entry);
    } catch (const detail::process_ended&) {
      throw;
    } catch (...) {  // NOLINT(bugprone-empty-catch): as in production, where stderr has the line
    }
  });
}

void virtual_host::run_handler(checkpoint_handler handler, std::error_code result) {
  threads_->post(*handlers_, [this, handler = std::move(handler), result] {
    try {
      handler(result);
    } catch (const detail::process_ended&) {
      throw;
    } catch (...) {
      user_code_threw("a checkpoint handler", std::current_exception());
    }
  });
}

void virtual_host::user_code_threw(const char* source, const std::exception_ptr& thrown) {
  if (is_gone_) return;  // thrown in place of process_ended
  const auto failure = driver::describe(source, thrown);
  keep_if_fatal(failure, thrown);
  driver_.on_user_code_threw(failure);
}

/// The first failure is the session's.
void virtual_host::keep_if_fatal(const session::session::failure& failure,
                                 const std::exception_ptr& thrown) {
  if (!thrown_ && driver_.is_fatal(failure)) thrown_ = thrown;
}

void virtual_host::set_names() {
  names_ = std::make_shared<observer::shard_names>(observer::shard_names{
      shard_id_, context_.stream_name, context_.application_name, context_.worker_id});
}

void virtual_host::observe(observer::shard_event event) noexcept {
  if (driver_.options().observers.empty() || is_gone_) return;
  const observer::event_source source{names_, clock_->now(), clock_->date()};
  threads_->post(*events_,
                 [this, source, event = std::move(event)] { call_observers(source, event); });
}

void virtual_host::call_observers(const observer::event_source& source,
                                  const observer::shard_event& event) {
  for (const auto& watching : driver_.options().observers) {
    try {
      watching->on_event(source, event);
    } catch (const detail::process_ended&) {
      throw;
    } catch (...) {
      if (!std::exchange(has_observer_thrown_, true)) {
        driver_.on_log(log_level::warning, driver::observer_threw(std::current_exception()));
      }
    }
  }
}

// Each completion calls this, so a completion on a wrong thread is noticed here.
bool virtual_host::is_observed() const noexcept {
  if (!virtual_threads::is_stop_thread() && !usage_->is_owner("a completion")) return false;
  return !driver_.options().observers.empty();
}

void virtual_host::request_stop() {
  if (stop_.stop_requested()) return;
  // A stop callback may wait for what user code holds, so it must not run on this thread while user
  // code is in its middle.
  if (is_running_user_code() || threads_->are_waiting()) return threads_->request_stop(stop_);
  stop_.request_stop();
}

void virtual_host::settle() {
  while (!status() && !is_gone_) {
    if (!unread_.empty()) {
      const std::string line = std::move(unread_.front());
      unread_.pop_front();
      read(line);
    } else if (std::exchange(has_input_ended_, false)) {
      driver_.on_end_of_input(false);
    } else {
      break;
    }
  }
}

void virtual_host::read(const std::string& line) {
  if (const std::size_t limit = driver_.options().max_line_length; line.size() > limit) {
    return driver_.on_line(decoder_.too_long(line.data(), line.size(), limit));
  }
  auto memory = std::make_shared<driver::batch_memory>();
  memory->line.grow(line.size() + 1);
  std::memcpy(memory->line.data(), line.data(), line.size());
  driver_.on_line(decoder_.decode(std::move(memory), line.size()));
}

bool virtual_host::run_user_code() {
  if (is_gone_) return false;
  idle_->step();
  timers_.take_dropped().clear();  // user code, so not inside an event of the driver
  using share = virtual_threads::share;
  if (threads_->run(share::untimed)) return true;
  const auto timer = is_timers_turn_ ? timers_.take_due(clock_->now()) : nullptr;
  is_timers_turn_ = !timer;
  if (timer) {
    run_timer(timer);
  } else if (threads_->run(share::all) ||
             (timers_.next_due() && *timers_.next_due() <= clock_->now())) {
    return true;  // a timer that is due gets the next turn
  } else if (call_) {
    run_callback();
  } else {
    return false;
  }
  return true;
}

void virtual_host::run_callback() {
  session::call call = *std::exchange(call_, std::nullopt);
  place_ = place::callback;
  idle_->end();
  callback_lasts_at_ = clock_->now() + session::callback_patience;
  if (driver_.is_due(call)) around_.callback_begins(call.kind);
  const auto result = driver_.run_callback(std::move(call), context_, shared_from_this());
  end_user_code();
  if (is_gone_) return;
  if (status() == exit_status::callback_stuck)
    return keep_undestroyed(driver_.processor().abandon());
  if (result.failure) keep_if_fatal(*result.failure, result.thrown);
  driver_.on_callback_done(result);
}

void virtual_host::run_timer(const driver::shard_timers::function& timer) {
  place_ = place::timer;
  std::exception_ptr thrown;
  try {
    (*timer)();
  } catch (const detail::process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended the timer
  } catch (...) {
    thrown = std::current_exception();
  }
  end_user_code();
  if (thrown) user_code_threw(driver::between_callbacks, thrown);
}

void virtual_host::end_user_code() {
  place_ = place::outside;
  callback_lasts_at_.reset();
}

void virtual_host::leave_callback_of_the_dead() const {
  if (!is_running_user_code()) return;
  if (is_gone_ || status() == exit_status::callback_stuck) throw detail::process_ended();
}

void virtual_host::kill() {
  if (status()) return finish();
  keep_undestroyed(driver_.processor().abandon());
  is_gone_ = true;
  threads_->end();
  timers_.end();
  keep_undestroyed(timers_.take_dropped());
}

void virtual_host::finish() {
  idle_->end();
  request_stop();  // the processor's destructor may wait for threads that wait for the stop
  if (status()) threads_->run(virtual_threads::share::all);  // handlers may use the processor
  teardown_end_ = clock_->now() + driver_.options().grace_time;
  driver_.processor().destroy();
  is_gone_ = true;
  threads_->end();
  timers_.end();
  timers_.take_dropped().clear();
  idle_->end();
}

std::unique_ptr<detail::thread_pool> virtual_host::make_thread_pool(std::size_t threads) {
  return std::make_unique<pool>(weak_from_this(), usage_, threads_->add_group(threads));
}

std::shared_ptr<void> virtual_host::adopt(executor adopted) {
  const auto group = threads_->add_group(1, std::move(adopted));
  return {group.get(), [this, group](void*) { join(group); }};
}

void virtual_host::join(const std::shared_ptr<group>& joined) noexcept {
  threads_->close(joined);
  run_until([&] { return joined->is_idle(); });
  threads_->end(*joined);
}

bool virtual_host::run_until(const std::function<bool()>& is_over) {
  try {
    if (threads_->is_caller()) {
      wait_until(time_point::max(), is_over);
    } else {
      pass_time(teardown_end_.value_or(time_point::max()),
                [&] { return is_over() || idle_->is_over(); });
    }
  } catch (const detail::process_ended&) {  // NOLINT(bugprone-empty-catch): no destructor throws it
  }
  if (is_over()) return true;
  if (teardown_end_ && !is_gone_) leave_stuck();
  return false;
}

/// The processor's destructor exceeds the grace time: leaves as the real host does. Functions that
/// still wait are ended.
void virtual_host::leave_stuck() {
  write_log(log_level::error,
            "the processor's destructor, or other user code at the end of the session, did not "
            "return within the grace time",
            std::nullopt);
  threads_->run(virtual_threads::share::untimed);
  around_.left(exit_status::callback_stuck);
  is_gone_ = true;
  threads_->end();
}

std::optional<virtual_host::time_point> virtual_host::next_library_timer() const {
  auto first = earlier(threads_->next_timer(), earlier(callback_lasts_at_, daemon_end_));
  for (const auto& due : session_timers_) first = earlier(first, due);
  return first;
}

std::optional<virtual_host::time_point> virtual_host::next_timer() const {
  const auto of_library = next_library_timer();
  return place_ == place::outside ? earlier(of_library, timers_.next_due()) : of_library;
}

void virtual_host::fire_timers() {
  if (callback_lasts_at_ && *callback_lasts_at_ <= clock_->now()) {
    callback_lasts_at_.reset();
    driver_.on_callback_lasts();
  }
  if (daemon_end_ && *daemon_end_ <= clock_->now()) {
    daemon_end_.reset();
    around_.daemon_ends();
  }
  for (std::size_t timer = 0; timer < session_timers_.size(); ++timer) {
    auto& due = session_timers_.at(timer);
    if (!due || *due > clock_->now()) continue;
    due.reset();
    driver_.on_timer(static_cast<session::timer>(timer));
  }
}

virtual_host::waited virtual_host::wait_until(time_point deadline,
                                              const std::function<bool()>& is_over) {
  require_progress();
  auto how = waited::to_end;
  if (threads_->is_caller()) {
    const auto ends = [&] {
      return is_gone_ || status() == exit_status::callback_stuck || is_over();
    };
    if (!ends() && clock_->now() < deadline) threads_->wait(deadline, ends);
  } else {
    how = pass_time(deadline, [&] {
      if (idle_->is_spinning() && is_running_user_code()) end_without_progress();
      leave_callback_of_the_dead();
      return is_over();
    });
  }
  leave_callback_of_the_dead();
  return how;
}

virtual_host::waited virtual_host::pass_time(time_point deadline,
                                             const std::function<bool()>& is_over) {
  while (!is_gone_ && !is_over() && clock_->now() < deadline) {
    if (threads_->run(virtual_threads::share::all)) continue;
    const auto timer = next_library_timer();
    if (!timer && deadline == time_point::max()) return waited::in_vain;
    const time_point until = std::min(timer.value_or(deadline), deadline);
    idle_->pass(until - clock_->now());
    clock_->move_to(until);
    fire_timers();
    settle();
  }
  return waited::to_end;
}

void virtual_host::pass(time_point until) {
  leave_callback_of_the_dead();
  idle_->end();
  wait_until(until, [&] {
    idle_->end();
    return false;
  });
}

void virtual_host::require_progress() {
  if (!is_running_user_code()) return idle_->end();  // the test itself waits
  idle_->step();
  if (idle_->is_over()) end_without_progress();
}

void virtual_host::end_without_progress() {
  if (!is_gone_ && !status()) {
    around_.waits_without_end();
    kill();
  }
  throw detail::process_ended();
}

void virtual_host::refuse(const std::string& reason) {
  if (is_running_user_code()) usage_->remember(reason);
  throw std::logic_error(reason);
}

bool virtual_host::may_request(const char* function) {
  if (virtual_threads::is_stop_thread()) return false;
  usage_->require_owner(function);
  leave_callback_of_the_dead();
  return !is_gone_;
}

bool virtual_host::is_on_own_thread(const char* function) {
  return !virtual_threads::is_stop_thread() && usage_->is_owner(function);
}

bool virtual_host::may_report(const char* function) {
  if (!is_on_own_thread(function)) return false;
  leave_callback_of_the_dead();
  return !is_gone_;
}

std::error_code virtual_host::checkpoint(const std::optional<sequence_position>& position,
                                         const std::optional<time_point>& deadline) {
  if (!may_request("checkpoint()")) return errc::daemon_gone;
  if (place_ == place::timer && !threads_->is_caller())
    return status() ? errc::daemon_gone : errc::not_allowed_here;
  const session::waiter_id id = driver_.next_waiter();
  waiting_.emplace(id, std::nullopt);
  driver_.on_checkpoint(id, position, is_in_callback());
  settle();
  const waited how =
      wait_until(deadline.value_or(time_point::max()), [&] { return waiting_.at(id).has_value(); });
  const auto result = waiting_.extract(id).mapped();
  if (result) return *result;
  driver_.on_deadline(id);
  settle();
  if (how == waited::to_end) return errc::timed_out;
  refuse("checkpoint(" + (position ? to_string(*position) : std::string()) +
         ") waits for the daemon, which reads only while a callback is open, and none is: on this "
         "one thread it would never return. Use async_checkpoint(), or checkpoint_until()");
}

void virtual_host::async_checkpoint(const std::optional<sequence_position>& position,
                                    checkpoint_handler handler) {
  if (!may_request("async_checkpoint()")) return;
  if (position && position->is_number() &&
      (!furthest_requested_ || *furthest_requested_ < *position)) {
    furthest_requested_ = position;
    idle_->end();
  }
  driver_.on_async_checkpoint(position, std::move(handler), is_in_callback());
  settle();
}

bool virtual_host::sleep_until(time_point deadline) {
  if (!may_request("sleep_until()")) return false;
  if (wait_until(deadline, [this] { return stop_.stop_requested(); }) == waited::in_vain) {
    refuse(
        "sleep_until() waits for a stop, and nothing can bring it: on this one thread it would "
        "never return");
  }
  return !stop_requested();
}

void virtual_host::wait_until_notified(time_point deadline) {
  usage_->require_owner("wait_until_notified()");
  leave_callback_of_the_dead();
  if (wait_until(deadline, [this] { return is_notified_ || stop_requested(); }) ==
      waited::in_vain) {
    refuse(
        "a callback waits for a notification, and nothing can bring it: on this one thread it "
        "would never return");
  }
  is_notified_ = false;
  leave_callback_of_the_dead();
}

void virtual_host::notify() {
  if (is_on_own_thread("a completion, or notify(),")) is_notified_ = true;
}

void virtual_host::fail(std::exception_ptr thrown) {
  if (!may_report("fail()")) return;
  user_code_threw("the shard's processing", thrown);
  settle();
}

void virtual_host::request_worker_stop() {
  if (may_report("request_worker_stop()")) around_.asks_worker_to_stop();
}

void virtual_host::log(log_level level, const std::string& text,
                       const std::optional<sequence_position>& position) {
  if (may_request("log()")) driver_.on_log(level, text, position);
}

virtual_host::timer_id virtual_host::start_timer(std::chrono::milliseconds delay,
                                                 std::chrono::milliseconds period,
                                                 std::function<void()> function) {
  if (!is_on_own_thread("a completion, or a timer,")) return 0;
  leave_callback_of_the_dead();
  return timers_.start(clock_->now() + delay, period, std::move(function));
}

void virtual_host::cancel_timer(timer_id timer) {
  if (is_on_own_thread("cancel()")) timers_.cancel(timer);
}

}  // namespace kclxx::testing
