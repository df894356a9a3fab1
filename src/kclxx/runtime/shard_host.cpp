// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard_host.hpp"

#include <algorithm>
#include <random>

#include "io/stdio_guard.hpp"
#include "io/task_thread.hpp"

namespace kclxx::runtime {

using std::chrono::ceil;
using std::chrono::milliseconds;

namespace {

// After least_teardown the log functions have last_logs to return, then the last lines have
// last_lines, and the line that counts lost lines has last_count: together less than the second
// that run promises beyond the grace time.
constexpr milliseconds last_logs{200};
constexpr milliseconds last_lines{200};
constexpr milliseconds last_count{50};
/// During the grace time a reader of the log that takes nothing for this long is not waited for.
constexpr milliseconds reader_patience{500};

/// Lines that the daemon has not taken are written again after this time.
constexpr milliseconds output_pause{10};

/// While a line waits for its turn, nothing is read. The end of the input is looked for this often.
constexpr milliseconds end_interval{100};

}  // namespace

shard_host::shard_host(configuration settings, stuck_function on_stuck,
                       processor_factory make_processor, const run_options& options)
    : settings_(std::move(settings)),
      on_stuck_(std::move(on_stuck)),
      tasks_(options, settings_.log),
      driver_(std::move(make_processor), options, std::random_device{}(), *this),
      output_(settings_.output),
      input_(settings_.input, options.max_line_length),
      poll_(settings_.input),
      reactor_(settings_.input, loop_timer_count,
               {[this] { on_readable(); }, [this](std::size_t timer) { on_timer(timer); }},
               settings_.shared_loop) {}

/// The threads of the observation may outlive this object, so they do not own it.
void shard_host::start_observation() {
  const auto write = [self = weak_from_this()](log_level level, const std::string& text) {
    if (const auto keep = self.lock()) keep->log(level, text, std::nullopt);
  };
  observation_ =
      observability::observation::make(driver_.options(),
                                       {{},
                                        settings_.names.stream_name,
                                        settings_.names.application_name,
                                        settings_.names.worker_id},
                                       {write,
                                        [self = weak_from_this()](std::string text) {
                                          if (const auto keep = self.lock())
                                            keep->tasks_.lines().write_text(std::move(text));
                                        },
                                        [write](const std::exception_ptr& thrown) {
                                          write(log_level::warning, driver::observer_threw(thrown));
                                        }});
}

std::optional<exit_status> shard_host::status() const {
  const std::lock_guard lock(mutex_);
  return driver_.status();
}

void shard_host::end_input() noexcept {
  const std::lock_guard lock(mutex_);
  driver_.on_end_of_input(false);
}

// The callbacks' thread.

void shard_host::run() noexcept {
  const auto self = shared_from_this();
  settings_.names.stop_token = tasks_.stop_token();
  run_callbacks();
  // The session is over, but user code on further threads is not. The order matters. Handlers and
  // stop callbacks may use the processor, so they return before it is destroyed.
  finish_user_code();
  driver_.processor().destroy();
  copies_.leave_if_copied();
  // The processor's destructor may have logged, and an observer's failure is logged, so the log
  // function ends last. A checkpointer may keep this object alive, but not its threads.
  finish_observation(clock::now() + last_logs);
  finish_user_code();
  tasks_.end();
}

void shard_host::run_callbacks() {
  session_lock lock(mutex_);
  callbacks_thread_ = std::this_thread::get_id();
  while (!driver_.status()) {
    // A cancelled timer's function is user code, so its destructor runs without the lock, too.
    if (timers_.has_dropped()) {
      auto dropped = timers_.take_dropped();
      run_user_code(lock, user_code::between, [&] { dropped.clear(); });
    }
    auto timer = is_timers_turn_ ? timers_.take_due(clock::now()) : nullptr;
    is_timers_turn_ = !timer;
    if (timer) {
      run_timer(lock, std::move(timer));
    } else if (call_) {
      run_callback(lock);
    } else if (!driver_.status()) {
      wait_for_work(lock);
    }
  }
}

template <class Function>
void shard_host::run_user_code(session_lock& lock, user_code running, Function function) {
  user_code_ = running;
  user_code_began_ = clock::now();
  // When user code lasts, on_watch lets the loop read. So the state is set before the lock is
  // released.
  watch();
  {
    const detail::unlocked meanwhile(lock);
    tasks_.await_stop();
    function();
    // In a forked copy the lock may belong to the loop, which does not exist there.
    copies_.leave_if_copied();
  }
  user_code_ = user_code::none;
}

void shard_host::run_callback(session_lock& lock) {
  session::call call = *std::exchange(call_, std::nullopt);
  driver::session_driver::callback_result result;
  run_user_code(lock, user_code::callback, [&] {
    result = driver_.run_callback(std::move(call), settings_.names, shared_from_this());
  });
  driver_.on_callback_done(result);
  drop(lock, result.thrown);
}

void shard_host::run_timer(session_lock& lock, driver::shard_timers::function timer) {
  std::exception_ptr thrown;
  session::session::failure why{};
  run_user_code(lock, user_code::between, [&] {
    try {
      (*timer)();
    } catch (...) {
      thrown = std::current_exception();
      why = driver::describe(driver::between_callbacks, thrown);
    }
    timer.reset();  // user code, if this was its only call
  });
  if (!thrown) return;
  driver_.on_user_code_threw(why);
  drop(lock, thrown);
}

/// Destroys the exception without the lock: its destructor may be the user's.
void shard_host::drop(session_lock& lock, std::exception_ptr& thrown) {
  if (!thrown) return;
  const detail::unlocked meanwhile(lock);
  thrown = nullptr;
}

void shard_host::wait_for_work(session_lock& lock) {
  const auto due = timers_.next_due();
  if (reader_ == reader::callbacks && may_read()) {
    read(lock, due);  // poll_.wake() ends that wait
  } else if (due) {
    has_work_.wait_until(lock, *due);
  } else {
    has_work_.wait(lock);
  }
}

/// Waits until all user code has returned.
void shard_host::finish_user_code() {
  for (;;) {
    tasks_.finish();
    std::vector<driver::shard_timers::function> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    // A thread of the user's may have requested a checkpoint between finish() and the lock. From
    // the moment that is_user_code_finished_ is set, async_checkpoint posts no handler any more.
    is_user_code_finished_ = !timers_.has_dropped() && tasks_.is_idle();
    if (is_user_code_finished_) return;
    dropped = timers_.take_dropped();
  }
}

void shard_host::finish_observation(time_point deadline) {
  if (!observation_ || observation_->finish(deadline)) return;
  log(log_level::warning, "an observer, or the directory of the metrics, took too long at the end",
      std::nullopt);
}

// On the thread that reads. reader_ changes only with the lock held, by these rules: the callbacks'
// thread takes the input when it has nothing to do (read), and gives it back when it has read. The
// loop takes it when user code lasts (on_watch), and gives it back when user code does not last any
// more (on_readable). So input_ has a single user at a time, which reads it without the lock.

bool shard_host::may_read() const {
  return !driver_.status() && !driver_.has_early_line() && !output_.keeps_lines() &&
         !input_.has_ended();
}

/// False when no line was there.
bool shard_host::hand_over_lines(session_lock& lock) {
  for (bool has_any = false;; has_any = true) {
    if (!input_.may_have_line() || !may_read()) return has_any;
    // Decoding takes time, so it is done without the lock. The session may end meanwhile; on_line
    // has no effect then.
    auto line = [&] {
      const detail::unlocked meanwhile(lock);
      return input_.next();
    }();
    if (!line) return has_any;
    driver_.on_line(*std::move(line));
    if (driver_.has_early_line()) watch_for_end();
  }
}

void shard_host::let_loop_read() {
  if (io::is_file(settings_.input)) return;
  reader_ = reader::loop;
  reactor_.resume();
}

// A watch serves many short callbacks: it is started again only when it is over.
void shard_host::watch() {
  if (std::exchange(is_watched_, true)) return;
  const auto delay = session::callback_patience - user_code_time();
  reactor_.arm(watch_timer, delay > milliseconds(0) ? delay : session::callback_patience);
}

// A watch serves many lines that wait for a moment only.
void shard_host::watch_for_end() {
  if (!std::exchange(is_end_watched_, true)) reactor_.arm(end_timer, end_interval);
}

void shard_host::on_line_waits() {
  const std::lock_guard lock(mutex_);
  is_end_watched_ = false;
  if (!driver_.has_early_line() || driver_.status()) return;
  io::has_ended(settings_.input) ? driver_.on_end_behind_line() : watch_for_end();
}

void shard_host::on_watch() {
  const std::lock_guard lock(mutex_);
  is_watched_ = false;
  // While the callbacks' thread has no user code, or reads, the loop need not read. After a read
  // the callbacks' thread starts the watch again.
  if (user_code_ == user_code::none || reader_ == reader::callbacks_reading || driver_.status()) {
    return;
  }
  if (user_code_time() < session::callback_patience) return watch();
  if (reader_ == reader::callbacks) let_loop_read();
  if (user_code_ == user_code::callback) driver_.on_callback_lasts();
}

milliseconds shard_host::user_code_time() const {
  return std::chrono::floor<milliseconds>(clock::now() - user_code_began_);
}

/// On the callbacks' thread: hands over the lines that were read before; without any it waits for
/// input once.
void shard_host::read(session_lock& lock, const std::optional<time_point>& deadline) {
  // From here on other threads wake this one by poll_ (wake_callbacks_thread), and the loop does
  // not take the input.
  reader_ = reader::callbacks_reading;
  if (!hand_over_lines(lock) && may_read()) {
    {
      const detail::unlocked meanwhile(lock);
      await_input(deadline);
    }
    hand_over_lines(lock);
  }
  reader_ = reader::callbacks;
}

void shard_host::await_input(const std::optional<time_point>& deadline) {
  std::optional<milliseconds> limit;
  if (input_.holds_large_memory()) limit = line_input::idle_time;
  if (deadline) {
    const auto until_deadline = ceil<milliseconds>(*deadline - clock::now());
    limit = limit ? std::min(*limit, until_deadline) : until_deadline;
  }
  const auto result = poll_.wait(limit);
  if (result == io::input_poll::result::timed_out) input_.on_idle();
  if (result == io::input_poll::result::readable) input_.read();
}

/// Looks for input itself, since the reactor may call it without any, and reads once.
void shard_host::on_readable() {
  session_lock lock(mutex_);
  // A call that resume() has posted may come when the input was given back already.
  if (reader_ != reader::loop) return reactor_.leave_input();
  hand_over_lines(lock);
  if (may_read()) {
    {
      const detail::unlocked meanwhile(lock);
      if (io::has_input(settings_.input)) input_.read();
    }
    hand_over_lines(lock);
  }
  is_loop_waiting_ = !may_read();
  const bool lasts =
      user_code_ != user_code::none && user_code_time() >= session::callback_patience;
  if (!is_loop_waiting_ && lasts) {
    if (input_.holds_large_memory()) reactor_.arm(idle_timer, line_input::idle_time);
    return;
  }
  reactor_.leave_input();
  // A line waits for its turn, or the output is full: continue_reading resumes.
  if (lasts) return;
  // The callbacks' thread takes the input back. This comes last: it may use input_ at once.
  if (user_code_ != user_code::none) watch();
  reader_ = reader::callbacks;
  is_loop_waiting_ = false;
  has_work_.notify_one();
  answered_.notify_all();
}

void shard_host::on_idle() {
  {
    const std::lock_guard lock(mutex_);
    if (reader_ != reader::loop) return;
  }
  // Only this thread takes the input away from the loop, so input_ is still the loop's.
  input_.on_idle();
  if (input_.holds_large_memory()) reactor_.arm(idle_timer, line_input::idle_time);
}

// The loop's timers.

void shard_host::on_timer(std::size_t timer) {
  switch (timer) {
    case idle_timer:
      return on_idle();
    case watch_timer:
      return on_watch();
    case end_timer:
      return on_line_waits();
    case output_timer:
      return on_output();
    case stuck_timer:
    case teardown_timer:
      return on_end(timer);
    default: {
      const std::lock_guard lock(mutex_);
      driver_.on_timer(static_cast<session::timer>(timer));
    }
  }
}

void shard_host::on_output() {
  const std::lock_guard lock(mutex_);
  if (const std::error_code ec = output_.write_kept()) driver_.on_output_broken(ec);
  if (output_.keeps_lines()) return reactor_.arm(output_timer, output_pause);
  continue_reading();
}

/// An obstacle to reading is gone: lines that the daemon had not taken, or a line that waited for
/// its turn. Wakes the thread that reads.
void shard_host::continue_reading() {
  if (reader_ == reader::callbacks) {
    has_work_.notify_one();
    answered_.notify_all();
  } else if (std::exchange(is_loop_waiting_, false)) {
    reactor_.resume();
  }
}

void shard_host::on_end(std::size_t timer) {
  session_lock lock(mutex_);
  const bool is_returned = user_code_ == user_code::none;
  lock.unlock();  // on_stuck_ waits, and drains lines under the lock
  if (timer == teardown_timer) {
    on_stuck_(
        "the processor's destructor, or other user code at the end of the session, did not return "
        "within the grace time");
  } else if (!is_returned) {
    on_stuck_(nullptr);
  }
}

// driver::host

std::error_code shard_host::write(std::string_view lines) {
  const std::error_code ec = output_.write(lines);
  if (output_.keeps_lines()) {
    reactor_.arm(output_timer, output_pause);
  } else if (!is_callbacks_thread() || is_loop_waiting_) {
    continue_reading();
  }
  return ec;
}

void shard_host::arm(session::timer timer, milliseconds delay) {
  if (timer == session::timer::grace) grace_end_ = clock::now() + delay;
  reactor_.arm(static_cast<std::size_t>(timer), delay);
}

void shard_host::call(session::call call) {
  if (call.kind == protocol::action_kind::initialize) {
    shard_id_ = call.shard_id;
    if (observation_) observation_->name_shard(call.shard_id);
  }
  call_ = std::move(call);
  wake_callbacks_thread();
}

void shard_host::end_timers() {
  timers_.end();
  wake_callbacks_thread();
}

void shard_host::wake(session::waiter_id waiter, std::error_code result) {
  const auto found = outcomes_.find(waiter);
  if (found == outcomes_.end()) return;
  found->second = result;
  answered_.notify_all();
  wake_callbacks_thread();
}

/// Callbacks and timers that have not begun are not run.
void shard_host::left(exit_status status) {
  call_.reset();
  end_timers();
  const auto now = clock::now();
  if (!grace_end_) grace_end_ = now + driver_.options().grace_time;
  const auto until_grace_end = ceil<milliseconds>(*grace_end_ - now);
  reactor_.arm(teardown_timer, std::max(until_grace_end, least_teardown));
  // The session has waited for the callback during the grace time.
  if (status == exit_status::callback_stuck) reactor_.arm(stuck_timer, milliseconds(0));
}

/// Posts the line with the lock held, so that lines have the order of the events.
void shard_host::write_log(log_level level, std::string text,
                           const std::optional<sequence_position>& position) {
  tasks_.log({level, shard_id_, std::move(text), position});
}

void shard_host::request_stop() { tasks_.request_stop(); }

void shard_host::run_handler(checkpoint_handler handler, std::error_code result) {
  // A handler that does not return must not keep the host alive.
  tasks_.run_handler([weak = weak_from_this(), handler = std::move(handler), result] {
    if (const auto self = weak.lock()) self->tasks_.await_stop();
    std::exception_ptr thrown;
    try {
      handler(result);
    } catch (...) {
      thrown = std::current_exception();
    }
    const auto self = weak.lock();
    if (self && thrown) self->user_code_threw("a checkpoint handler", thrown);
  });
}

/// The callbacks' thread waits for has_work_, or for input with poll_.
void shard_host::wake_callbacks_thread() {
  has_work_.notify_one();
  if (reader_ == reader::callbacks_reading && !is_callbacks_thread()) poll_.wake();
}

bool shard_host::is_callbacks_thread() const {
  return std::this_thread::get_id() == callbacks_thread_;
}

/// A timer is no callback, although an action may be open while it runs.
bool shard_host::is_in_callback() const {
  return is_callbacks_thread() && user_code_ != user_code::between;
}

// shard_service

void shard_host::async_checkpoint(const std::optional<sequence_position>& position,
                                  checkpoint_handler handler) noexcept {
  copies_.leave_if_copied();
  {
    const std::lock_guard lock(mutex_);
    if (!is_user_code_finished_) {
      return driver_.on_async_checkpoint(position, std::move(handler), is_in_callback());
    }
  }
  if (!handler) return;
  // The thread of the handlers has ended for this session, and the processor's destructor may wait
  // for the caller's thread. So the handler runs here.
  try {
    handler(errc::daemon_gone);
  } catch (...) {
    user_code_threw("a checkpoint handler", std::current_exception());
  }
}

std::error_code shard_host::checkpoint(const std::optional<sequence_position>& position,
                                       const std::optional<time_point>& deadline) noexcept {
  copies_.leave_if_copied();
  session_lock lock(mutex_);
  // Between two actions the daemon does not read, and the next action waits for this thread.
  if (is_callbacks_thread() && user_code_ == user_code::between) {
    return driver_.status() ? errc::daemon_gone : errc::not_allowed_here;
  }
  const session::waiter_id id = driver_.next_waiter();
  const auto& outcome = outcomes_[id];
  driver_.on_checkpoint(id, position, is_in_callback());
  while (!outcome && (!deadline || clock::now() < *deadline)) await_answer(lock, deadline);
  const std::optional<std::error_code> result = outcome;
  outcomes_.erase(id);
  if (!result) driver_.on_deadline(id);
  lock.unlock();
  tasks_.await_stop();
  return result.value_or(errc::timed_out);
}

void shard_host::await_answer(session_lock& lock, const std::optional<time_point>& deadline) {
  if (is_callbacks_thread() && user_code_ != user_code::none && reader_ == reader::callbacks &&
      may_read()) {
    read(lock, deadline);
    watch();  // user code continues after the call of checkpoint()
  } else if (deadline) {
    answered_.wait_until(lock, *deadline);
  } else {
    answered_.wait(lock);
  }
}

bool shard_host::sleep_until(time_point deadline) {
  const std::stop_token stop = tasks_.stop_token();
  notification never_notified;
  never_notified.wait_until(deadline, stop);
  return !stop.stop_requested();
}

shard_host::timer_id shard_host::start_timer(milliseconds delay, milliseconds period,
                                             std::function<void()> function) {
  copies_.leave_if_copied();
  const std::lock_guard lock(mutex_);
  const timer_id id = timers_.start(clock::now() + delay, period, std::move(function));
  wake_callbacks_thread();
  return id;
}

void shard_host::cancel_timer(timer_id timer) {
  copies_.leave_if_copied();
  const std::lock_guard lock(mutex_);
  timers_.cancel(timer);
  if (timers_.has_dropped()) wake_callbacks_thread();
}

std::unique_ptr<detail::thread_pool> shard_host::make_thread_pool(std::size_t threads) {
  // The threads keep the caller's signal mask: programs that user code starts there inherit it.
  return std::make_unique<real_thread_pool>(threads);
}

void shard_host::user_code_threw(const std::string& source,
                                 const std::exception_ptr& thrown) noexcept {
  copies_.leave_if_copied();
  const auto why = driver::describe(source, thrown);  // user code: without the lock
  const std::lock_guard lock(mutex_);
  driver_.on_user_code_threw(why);
}

void shard_host::fail(std::exception_ptr thrown) {
  user_code_threw("the shard's processing", thrown);
}

void shard_host::request_worker_stop() {
  copies_.leave_if_copied();
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_asked_to_stop_, true)) return;
  }
  if (!settings_.daemon) return shard_service::request_worker_stop();
  const std::error_code error = io::ask_to_end(*settings_.daemon);
  const std::string daemon = "the daemon, process " + std::to_string(settings_.daemon->id);
  if (error) {
    log(log_level::error, daemon + ", cannot be asked to stop: " + error.message(), {});
  } else {
    log(log_level::warning, daemon + ", is asked to stop: all shards of this worker end", {});
  }
}

void shard_host::log(log_level level, const std::string& text,
                     const std::optional<sequence_position>& position) {
  copies_.leave_if_copied();
  const std::lock_guard lock(mutex_);
  driver_.on_log(level, text, position);
}

void shard_host::observe(observer::shard_event event) noexcept {
  copies_.leave_if_copied();
  if (observation_) observation_->observe(std::move(event));
}

// After the end.

bool shard_host::drain_lines() {
  const auto deadline = clock::now() + last_lines;
  session_lock lock(mutex_);
  // The loop may have ended, so this thread writes.
  while (output_.keeps_lines() && clock::now() < deadline) {
    {
      const detail::unlocked meanwhile(lock);
      std::this_thread::sleep_for(output_pause);
    }
    output_.write_kept();
  }
  output_.drop_kept();
  const auto latest = std::max(deadline, grace_end_.value_or(deadline));
  lock.unlock();
  return tasks_.lines().finish(reader_patience, latest, last_count);
}

void shard_host::drain_stuck(const char* reason) {
  session_lock lock(mutex_);
  const std::string shard = shard_id_;
  lock.unlock();
  if (reason != nullptr) tasks_.log({log_level::error, shard, reason});
  const auto deadline = clock::now() + last_logs;
  finish_observation(deadline);
  if (!tasks_.drain(deadline)) {
    tasks_.lines().write(
        {log_level::error, shard,
         "a log function or a checkpoint handler did not return within the grace time"});
  }
  tasks_.lines().finish(last_lines, clock::now() + last_lines, last_count);
}

void shard_host::abandon() {
  tasks_.abandon();
  const std::lock_guard lock(mutex_);
  output_.drop_kept();
}

}  // namespace kclxx::runtime
