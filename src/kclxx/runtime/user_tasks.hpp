// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

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

}  // namespace kclxx::runtime
