// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace kclxx::runtime {

/// Runs functions one after the other on a thread of its own, which is started with the first one:
/// for user code that must not hold up the library's threads.
///
/// Thread safety: all functions from any thread.
class task_thread {
 public:
  task_thread();
  /// Abandons what has not been run, and a function that is running.
  ~task_thread();
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// Errors: std::system_error when the thread cannot be started.
  void post(std::function<void()> task);
  /// Waits until all that was posted has run. False when the deadline passed first.
  bool drain(std::chrono::steady_clock::time_point deadline);

 private:
  struct state;
  static void run(const std::shared_ptr<state>& shared);

  std::shared_ptr<state> state_;
};

}  // namespace kclxx::runtime
