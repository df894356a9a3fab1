// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// User code that runs beside the callbacks: log functions, checkpoint handlers and the callbacks
/// of the stop token, each on a thread of its own while there is something to run. No function runs
/// user code itself.
///
/// Thread safety: the first group needs external synchronization; all others may be called from any
/// thread.
class user_tasks {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Without a function, log lines go to the descriptor, or where the options direct them, on a
  /// thread of their own. Errors: std::system_error when the descriptor cannot be copied.
  user_tasks(const run_options& options, int log_descriptor);
  ~user_tasks();
  user_tasks(const user_tasks&) = delete;
  user_tasks& operator=(const user_tasks&) = delete;

  void run(std::function<void()> task) { thread_.post(std::move(task)); }
  /// Call it once. The stop is requested when this returns.
  void request_stop();
  /// No handler is running, or waits for its thread.
  [[nodiscard]] bool is_idle() { return thread_.drain(std::chrono::steady_clock::now()); }

  void log(const log_entry& entry);
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }
  /// Waits until all user code has returned.
  void finish();
  /// The log function is not called any more when this returns; a thread of the user's may still
  /// log.
  void end_log_function();
  /// Waits until log functions and handlers have returned. False when the deadline passed first.
  bool drain(time_point deadline) {
    return thread_.drain(deadline) && (!log_ || log_->drain(deadline));
  }
  /// The lines for the descriptor.
  [[nodiscard]] log_thread& lines() noexcept { return *lines_; }
  /// Runs and writes nothing any more.
  void abandon();

 private:
  log_level level_;
  std::shared_ptr<log_thread> lines_;
  std::unique_ptr<log_thread> log_;  // of the log function, if there is one
  io::task_thread thread_;
  std::stop_source stop_;
  std::thread stop_thread_;
};

/// Returns true at the deadline, false as soon as `stop` stops. Blocking: yes.
bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);

/// What shard_service::wait_until_notified waits for.
/// Thread safety: one thread waits; notify from any thread.
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
  bool is_notified_ = false;
};

/// Threads of the machine. A function that throws ends the process.
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
  std::condition_variable has_work_;
  std::deque<std::function<void()>> functions_;
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kclxx::runtime
