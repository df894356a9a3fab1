// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/run_options.hpp>

#include "io/task_thread.hpp"
#include "runtime/log_thread.hpp"

namespace kclxx::runtime {

/// User code of one session that runs beside its callbacks: the log function, checkpoint handlers
/// and the callbacks of the stop token. Each of the three has a thread, so that none waits for
/// another, and so have the lines of the log. A thread is started when it is first needed, and
/// lives as long as the session. Posting to it waits for nobody, so it may be done with the
/// session's lock held.
///
/// Thread safety: all functions from any thread.
class user_tasks {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Log lines go to the program's log function. Without one they go to the descriptor, or where
  /// the options direct them.
  /// Errors: std::system_error when the descriptor cannot be copied.
  user_tasks(const run_options& options, int log_descriptor);

  void run_handler(std::function<void()> handler) { handlers_.post(std::move(handler)); }
  /// Whether no checkpoint handler runs or waits for its thread.
  [[nodiscard]] bool is_idle() { return handlers_.drain(std::chrono::steady_clock::now()); }
  /// Requests the stop soon, on the thread of the stop callbacks: these may want what a callback
  /// holds, or never return.
  /// Blocking: no.
  void request_stop();
  /// Returns at once unless request_stop() was called; then once the stop token shows it. User code
  /// that the session calls after its decision to stop has to see the token stopped.
  /// Blocking: until the thread of the stop callbacks has had its turn. Hold no lock.
  void await_stop() const;

  void log(const log_entry& entry);
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }
  /// Waits until the user code of all three kinds has returned.
  void finish();
  /// After finish(): ends the threads of handlers and the log function. A thread of the user's may
  /// still log, without effect.
  void end();
  /// Waits until log functions and handlers have returned. False when the deadline passed first.
  bool drain(time_point deadline) {
    return handlers_.drain(deadline) && (!log_ || log_->drain(deadline));
  }
  /// What writes lines to the descriptor.
  [[nodiscard]] log_thread& lines() noexcept { return *lines_; }
  /// From now on no handler or log function is called, and no line is written.
  void abandon();

 private:
  // Each member synchronizes itself.
  log_level level_;
  std::shared_ptr<log_thread> lines_;  // shared by the log function, whose failures it writes
  std::unique_ptr<log_thread> log_;    // calls the log function; null without one
  io::task_thread handlers_;
  io::task_thread stop_callbacks_;
  std::stop_source stop_;
  std::atomic<bool> is_stop_posted_ = false;
};

/// Returns true at the deadline, false as soon as a stop is requested.
/// Blocking: yes.
bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);

/// What shard_service::wait_until_notified waits for.
/// Thread safety: one thread waits; notify() may be called from any thread.
class notification {
 public:
  void notify() {
    const std::lock_guard lock(mutex_);
    is_notified_ = true;
    notified_.notify_one();
  }
  void wait_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    notified_.wait_until(lock, stop, deadline, [this] { return is_notified_; });
    is_notified_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any notified_;
  bool is_notified_ = false;  // guarded by the mutex; the wait that sees it resets it
};

/// A pool of real threads. A function that throws ends the process.
class real_thread_pool final : public detail::thread_pool {
 public:
  /// Errors: std::system_error.
  explicit real_thread_pool(std::size_t threads);
  ~real_thread_pool() override;

  void post(std::function<void()> function) override;

 private:
  void run();
  void end();

  std::mutex mutex_;
  // The mutex guards functions_ and is_ended_.
  std::condition_variable has_work_;
  std::deque<std::function<void()>> functions_;
  bool is_ended_ = false;
  std::vector<std::thread> threads_;  // changed by the constructor and the destructor alone
};

}  // namespace kclxx::runtime
