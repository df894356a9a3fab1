// SPDX-License-Identifier: Apache-2.0
#include "runtime/callbacks_thread.hpp"

#include <exception>
#include <utility>

#include "runtime/input_turns.hpp"

namespace kclxx::runtime {

void callbacks_thread::run(const std::shared_ptr<detail::shard_service>& service,
                           const shard_context::fields& names) {
  std::unique_lock lock(session_.mutex);
  thread_ = std::this_thread::get_id();
  while (!session_.driver.status()) {
    if (session_.tasks.has_without_thread()) run_without_thread(lock);
    auto timer = is_timers_turn_ ? session_.timers.take_due(clock::now()) : nullptr;
    is_timers_turn_ = !timer;
    if (timer) {
      run_timer(lock, std::move(timer));
    } else if (call_) {
      run_callback(lock, service, names);
    } else {
      wait_for_work(lock);
    }
  }
}

void callbacks_thread::call(session::call what) {
  call_ = std::move(what);
  wake();
}

void callbacks_thread::end() {
  call_.reset();
  session_.timers.end();
  wake();
}

callbacks_thread::timer_id callbacks_thread::start_timer(time_point due,
                                                         std::chrono::milliseconds period,
                                                         std::function<void()> function) {
  const timer_id id = session_.timers.start(due, period, std::move(function));
  wake();
  return id;
}

void callbacks_thread::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto due = session_.timers.next_due();
  if (input_.is_callbacks_threads()) {
    input_.read(lock, due);
  } else if (due) {
    has_work_.wait_until(lock, *due);
  } else {
    has_work_.wait(lock);
  }
}

void callbacks_thread::begin_user_code() {
  is_in_user_code_ = true;
  user_code_began_ = clock::now();
  input_.on_user_code_begins();
}

void callbacks_thread::run_callback(std::unique_lock<std::mutex>& lock,
                                    const std::shared_ptr<detail::shard_service>& service,
                                    const shard_context::fields& names) {
  session::call what = *std::exchange(call_, std::nullopt);
  begin_user_code();
  lock.unlock();
  {
    const auto result = session_.driver.run_callback(std::move(what), checkpointer(service), names);
    forked_.leave_if_copy(session_.shard_id);
    const synchronized_session::event now(session_);
    is_in_user_code_ = false;
    session_.driver.on_callback_done(result);
  }
  lock.lock();
}

void callbacks_thread::run_timer(std::unique_lock<std::mutex>& lock,
                                 driver::shard_timers::function timer) {
  begin_user_code();
  is_in_timer_ = true;
  lock.unlock();
  {
    std::exception_ptr thrown;
    try {
      (*timer)();
    } catch (...) {
      thrown = std::current_exception();
    }
    timer.reset();  // user code, if this was its only call
    forked_.leave_if_copy(session_.shard_id);
    const synchronized_session::event now(session_);
    is_in_user_code_ = is_in_timer_ = false;
    if (thrown) session_.driver.on_user_code_threw("a timer", thrown);
  }
  lock.lock();
}

/// Handlers and stop_callbacks for which no thread could be had.
void callbacks_thread::run_without_thread(std::unique_lock<std::mutex>& lock) {
  const auto functions = session_.tasks.take_without_thread();
  begin_user_code();
  is_in_timer_ = true;
  lock.unlock();
  for (const auto& function : functions) function();
  forked_.leave_if_copy(session_.shard_id);
  lock.lock();
  is_in_user_code_ = is_in_timer_ = false;
}

}  // namespace kclxx::runtime
