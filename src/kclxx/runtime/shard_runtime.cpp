// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard_runtime.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/real_thread_pool.hpp"
#include "base/stoppable_sleep.hpp"
#include "io/signals.hpp"
#include "runtime/logger.hpp"

namespace kclxx::runtime {

using std::chrono::milliseconds;
using event = synchronized_session::event;

namespace {

/// The destructor and what is left of user code have this long at least, then log functions, then
/// the lines for stderr: together less than the second that run promises beyond the grace time.
constexpr milliseconds least_teardown{500};
constexpr milliseconds last_logs{200};
constexpr milliseconds last_lines{200};

/// What the daemon has not taken is written again after this time.
constexpr milliseconds output_pause{10};

/// The event loop ends at once, unless user code has closed its descriptors.
constexpr milliseconds last_of_loop{1000};

}  // namespace

shard_runtime::shard_runtime(configuration with, processor_factory make_processor,
                             const run_options& options)
    : with_(std::move(with)),
      session_(std::move(make_processor), options, with_.output, with_.log, *this),
      input_({with_.input, with_.input_is_file, options.max_line_length, idle_timer, watch_timer},
             session_, callbacks_, reactor_),
      callbacks_(session_, input_),
      reactor_(with_.input, with_.input_is_file, all_timers, handlers(), with_.loop) {
  if (with_.input_is_file) reactor_.resume();
}

exit_status shard_runtime::serve() {
  if (with_.loop != nullptr) {
    run_callbacks();
    drain_lines();
    session_.tasks.abandon_lines();
    const std::lock_guard lock(session_.mutex);
    return *session_.driver.status();
  }
  // It ends the event loop, whether or not the callbacks' thread could be started.
  const auto end_loop = [this](std::thread* thread) {
    end_protocol_thread(*thread);
    const bool is_drained = drain_lines();
    // Its owner may close the descriptor now.
    if (!is_drained || !with_.leave_process) session_.tasks.abandon_lines();
  };
  std::thread protocol_thread;
  {
    const io::signal_block block;
    protocol_thread = std::thread([self = shared_from_this()] { self->run_protocol_thread(); });
  }
  const std::unique_ptr<std::thread, decltype(end_loop)> ended(&protocol_thread, end_loop);
  if (with_.leave_process) {
    run_callbacks();
    const std::lock_guard lock(session_.mutex);
    return *session_.driver.status();
  }
  std::thread callbacks([self = shared_from_this()] { self->run_callbacks(); });
  std::unique_lock lock(session_.mutex);
  is_done_.wait(lock, [this] { return is_finished_ || is_stuck_; });
  const bool is_stuck = !is_finished_;
  const exit_status status = is_stuck ? exit_status::callback_stuck : *session_.driver.status();
  lock.unlock();
  if (is_stuck) {
    callbacks.detach();
  } else {
    callbacks.join();
  }
  return status;
}

void shard_runtime::end_protocol_thread(std::thread& thread) {
  reactor_.stop();
  std::unique_lock lock(session_.mutex);
  const bool has_ended = is_done_.wait_for(lock, last_of_loop, [this] { return has_loop_ended_; });
  const auto status = session_.driver.status();
  lock.unlock();
  if (has_ended) {
    thread.join();
    // A callback that is stuck keeps this object longer than the input is open.
    reactor_.leave_loop();
    return;
  }
  thread.detach();
  if (with_.leave_process) with_.leave_process(status.value_or(exit_status::callback_stuck));
}

/// The last lines for the daemon and for stderr. What neither takes in time is lost.
bool shard_runtime::drain_lines() {
  const auto deadline = clock::now() + last_lines;
  std::unique_lock lock(session_.mutex);
  while (session_.output.keeps_lines() && clock::now() < deadline) {
    lock.unlock();
    std::this_thread::sleep_for(output_pause);
    lock.lock();
    session_.output.write_kept();
  }
  session_.output.drop_kept();
  lock.unlock();
  return session_.tasks.drain_lines(deadline);
}

void shard_runtime::end_input() {
  input_.on_hung_up();
  leave_if_stuck();
}

void shard_runtime::run_callbacks() {
  with_.names.service = shared_from_this();
  with_.names.stop_token = session_.tasks.stop_token();
  for (bool is_over = false; !is_over;) {
    try {
      callbacks_.run(with_.names.service, with_.names);
      is_over = true;
    } catch (const std::exception& error) {  // no memory for a line, no descriptor for a poll
      cannot_continue(cannot_serve(error.what()));
    }
  }
  // Handlers may use the processor, and the destructor may log.
  finish_user_code();
  session_.driver.processor().destroy();
  finish_observation(clock::now() + last_logs);
  finish_user_code();
  with_.names.service.reset();  // it kept this object alive
  const std::lock_guard lock(session_.mutex);
  is_finished_ = true;
  is_done_.notify_all();
}

/// Waits until all user code has returned. What got no thread runs on this one.
void shard_runtime::finish_user_code() {
  for (;;) {
    session_.tasks.finish();
    std::unique_lock lock(session_.mutex);
    const auto functions = session_.tasks.take_without_thread();
    lock.unlock();
    if (functions.empty()) return;
    for (const auto& function : functions) function();
  }
}

io::reactor::handlers shard_runtime::handlers() {
  const auto then_leave_if_stuck = [this](void (input_turns::*function)()) {
    return [this, function] {
      (input_.*function)();
      leave_if_stuck();
    };
  };
  return {
      then_leave_if_stuck(&input_turns::on_readable), then_leave_if_stuck(&input_turns::on_resumed),
      then_leave_if_stuck(&input_turns::on_hung_up), [this](std::size_t which) { on_timer(which); },
      [this](const char* what) { cannot_continue(cannot_serve(what)); }};
}

void shard_runtime::run_protocol_thread() {
  run_loop();
  const std::lock_guard lock(session_.mutex);
  has_loop_ended_ = true;
  is_done_.notify_all();
}

void shard_runtime::run_loop() {
  try {
    reactor_.run();
    return;
  } catch (const std::exception& error) {
    cannot_continue(cannot_serve(error.what()));
  } catch (...) {
    cannot_continue(cannot_serve("an unknown exception in the event loop"));
  }
  // There is no event loop any more: this thread keeps the end's time.
  std::unique_lock lock(session_.mutex);
  const auto end = clock::now() + std::max(session_.driver.options().grace_time, least_teardown);
  if (is_done_.wait_until(lock, end, [this] { return is_finished_; })) return;
  lock.unlock();
  leave_stuck("user code did not return within the grace time");
}

void shard_runtime::on_timer(std::size_t which) {
  switch (which) {
    case idle_timer:
      return input_.on_idle();
    case watch_timer:
      return input_.on_watch();
    case output_timer:
      on_output_timer();
      break;
    case teardown_timer:
      return leave_stuck(
          "the processor's destructor, or other user code at the end of the "
          "session, did not return within the grace time");
    default: {
      const event now(session_);
      session_.driver.on_timer(static_cast<session::timer>(which));
      break;
    }
  }
  leave_if_stuck();
}

void shard_runtime::on_output_timer() {
  const event now(session_);
  const std::error_code ec = session_.output.write_kept();
  if (ec) session_.driver.on_output_broken(ec);
  if (session_.output.keeps_lines()) {
    reactor_.arm(output_timer, output_pause);
  } else if (!input_.is_callbacks_threads()) {
    reactor_.resume();
  }
}

void shard_runtime::left(exit_status) {
  callbacks_.end();
  input_.wake_reader();
  const auto rest = grace_end_ ? std::chrono::ceil<milliseconds>(*grace_end_ - clock::now())
                               : session_.driver.options().grace_time;
  reactor_.arm(teardown_timer, std::max(rest, least_teardown));
}

/// The session has waited for the callback during the grace time.
void shard_runtime::leave_if_stuck() {
  {
    const std::lock_guard lock(session_.mutex);
    if (session_.driver.status() != exit_status::callback_stuck || !callbacks_.is_in_user_code()) {
      return;
    }
  }
  leave_stuck(nullptr);
}

/// User code cannot be ended. What it has logged is waited for, but not on the loop of all
/// sessions.
void shard_runtime::leave_stuck(const char* why) {
  {
    const std::lock_guard lock(session_.mutex);
    if (is_finished_ || std::exchange(is_leaving_stuck_, true)) return;
  }
  if (with_.loop == nullptr) return finish_stuck(why);
  try {
    const io::signal_block block;
    std::thread([self = shared_from_this(), why] { self->finish_stuck(why); }).detach();
  } catch (const std::exception&) {  // no thread can be had
    finish_stuck(why);
  }
}

void shard_runtime::finish_stuck(const char* why) {
  std::unique_lock lock(session_.mutex);
  const std::string shard = session_.shard_id;
  lock.unlock();
  if (why != nullptr) session_.tasks.log({log_level::error, shard, why});
  const auto deadline = clock::now() + last_logs;
  finish_observation(deadline);
  if (!session_.tasks.drain(deadline)) {
    session_.tasks.log_to_descriptor(
        {log_level::error, shard,
         "a log function or a checkpoint handler did not return within the grace time"});
  }
  session_.tasks.drain_lines(clock::now() + last_lines);
  if (with_.leave_process) with_.leave_process(exit_status::callback_stuck);
  session_.tasks.abandon();
  lock.lock();
  session_.output.drop_kept();
  is_stuck_ = true;
  is_done_.notify_all();
  lock.unlock();
  if (with_.on_stuck) with_.on_stuck();
}

void shard_runtime::finish_observation(time_point deadline) {
  if (!session_.observation || session_.observation->finish(deadline)) return;
  session_.tasks.log({log_level::warning, session_.shard_id,
                      "an observer, or the directory of the metrics, took too long at the end"});
}

void shard_runtime::cannot_continue(const std::string& why) noexcept {
  try {
    const event now(session_);
    session_.driver.on_failure(exit_status::resource_failure, why);
  } catch (...) {
    log_now(with_.log, {log_level::error, {}, why});
    if (with_.leave_process) with_.leave_process(exit_status::resource_failure);
  }
}

std::error_code shard_runtime::write(std::string_view lines) {
  if (with_.input_is_file) reactor_.resume();  // its next line may be due
  const std::error_code ec = session_.output.write(lines);
  if (session_.output.keeps_lines()) reactor_.arm(output_timer, output_pause);
  return ec;
}

void shard_runtime::arm(session::timer which, milliseconds after) {
  if (which == session::timer::grace) grace_end_ = clock::now() + after;
  reactor_.arm(static_cast<std::size_t>(which), after);
}

void shard_runtime::call(session::call what) {
  if (what.what == protocol::action_kind::initialize) {
    session_.shard_id = what.shard_id;
    if (session_.observation) session_.observation->name_shard(what.shard_id);
  }
  callbacks_.call(std::move(what));
  input_.wake_reader();
}

void shard_runtime::wake(session::waiter_id waiter, std::error_code result) {
  const auto found = session_.waiting.find(waiter);
  if (found == session_.waiting.end()) return;
  found->second->result = result;
  found->second->answered.notify_one();
  session_.waiting.erase(found);
  input_.wake_reader();
}

/// In the order of the events, hence under the lock.
void shard_runtime::write_log(log_level level, std::string text,
                              const std::optional<sequence_position>& position) {
  session_.tasks.log({level, session_.shard_id, std::move(text), position});
}

void shard_runtime::request_stop() {
  session_.tasks.request_stop();
  if (session_.tasks.has_without_thread()) wake_callbacks_thread();
}

void shard_runtime::wake_callbacks_thread() {
  callbacks_.wake();
  input_.wake_reader();
}

void shard_runtime::run_handler(checkpoint_handler handler, std::error_code result) {
  // std::function must be copyable.
  auto shared = std::make_shared<checkpoint_handler>(std::move(handler));
  session_.tasks.run([this, self = weak_from_this(), shared, result] {
    try {
      (*shared)(result);
    } catch (...) {
      if (const auto keep = self.lock()) {
        user_code_threw("a checkpoint handler", std::current_exception());
      }
    }
  });
  if (session_.tasks.has_without_thread()) wake_callbacks_thread();
}

void shard_runtime::user_code_threw(const std::string& whose,
                                    const std::exception_ptr& thrown) noexcept {
  try {
    const event now(session_);
    session_.driver.on_user_code_threw(whose, thrown);
  } catch (const std::exception& error) {
    cannot_continue(cannot_serve(error.what()));
  }
}

void shard_runtime::fail(std::exception_ptr thrown) {
  user_code_threw("the shard's processing", thrown);
}

void shard_runtime::async_checkpoint(const std::optional<sequence_position>& position,
                                     checkpoint_handler handler) {
  const event now(session_);
  session_.driver.on_async_checkpoint(position, std::move(handler),
                                      callbacks_.is_this_thread_in_callback());
}

std::error_code shard_runtime::checkpoint(const std::optional<sequence_position>& position,
                                          const std::optional<time_point>& deadline) {
  synchronized_session::waiting_call mine;
  event now(session_);
  // Between two actions the daemon does not listen, and the next waits for this thread.
  if (callbacks_.is_this_thread_in_timer()) {
    return session_.driver.status() ? errc::daemon_gone : errc::not_allowed_here;
  }
  const session::waiter_id id = session_.driver.next_waiter();
  const auto is_answered = [&] { return mine.result.has_value(); };
  try {
    session_.waiting.emplace(id, &mine);
    session_.driver.on_checkpoint(id, position, callbacks_.is_this_thread_in_callback());
    now.run_user_code();
    now.lock().lock();
    input_.read_until_answered(now.lock(), mine, deadline);
    if (!deadline) {
      mine.answered.wait(now.lock(), is_answered);
    } else {
      mine.answered.wait_until(now.lock(), *deadline, is_answered);
    }
  } catch (const std::exception& error) {  // no memory for a line, no descriptor for a poll
    if (now.lock().owns_lock()) now.lock().unlock();
    cannot_continue(cannot_serve(error.what()));
    now.lock().lock();
    session_.waiting.erase(id);
    return errc::daemon_gone;
  }
  if (mine.result) return *mine.result;
  session_.waiting.erase(id);
  session_.driver.on_deadline(id);
  return errc::timed_out;
}

bool shard_runtime::sleep_until(time_point deadline) {
  return detail::sleep_until(deadline, session_.tasks.stop_token());
}

shard_runtime::timer_id shard_runtime::start_timer(milliseconds delay, milliseconds period,
                                                   std::function<void()> function) {
  const synchronized_session::event now(session_);
  const timer_id id = callbacks_.start_timer(clock::now() + delay, period, std::move(function));
  input_.wake_reader();
  return id;
}

void shard_runtime::cancel_timer(timer_id timer) {
  const synchronized_session::event now(session_);
  session_.timers.cancel(timer);
}

std::unique_ptr<detail::thread_pool> shard_runtime::make_thread_pool(std::size_t threads) {
  // With the caller's signals: they are also those of the programs that user code starts.
  return std::make_unique<detail::real_thread_pool>(threads);
}

void shard_runtime::log(log_level level, const std::string& text,
                        const std::optional<sequence_position>& position) {
  const event now(session_);
  session_.driver.on_log(level, text, position);
}

void shard_runtime::observe(shard_event what) noexcept {
  if (session_.observation) session_.observation->observe(std::move(what));
}

/// Its threads may outlive this object.
void shard_runtime::start_observation() {
  const auto write = [self = weak_from_this()](log_level level, const std::string& text) {
    if (const auto keep = self.lock()) keep->log(level, text, std::nullopt);
  };
  session_.observation = observability::observation::make(
      session_.driver.options(),
      {{}, with_.names.stream_name, with_.names.application_name, with_.names.worker_id},
      {write,
       [self = weak_from_this()](std::string text) {
         if (const auto keep = self.lock()) keep->session_.tasks.write_text(std::move(text));
       },
       [write](const std::exception_ptr& thrown) {
         write(log_level::warning, driver::observer_threw(thrown));
       }});
}

}  // namespace kclxx::runtime
