// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

namespace kclxx::io {

/// Runs functions one after the other, on a thread that exists while there is one to run: for what
/// must hold up neither the library's threads nor the end of a session. A function does not throw.
///
/// Thread safety: all functions from any thread.
class task_thread {
 public:
  task_thread();
  /// Does not wait: what was posted is still run.
  ~task_thread() = default;
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// Errors: std::system_error when the thread cannot be started.
  void post(std::function<void()> task);
  /// Waits until all that was posted has run. False when the deadline passed first.
  bool drain(std::chrono::steady_clock::time_point deadline);
  /// Drops what has not been run, and all that is posted from now on.
  void abandon() noexcept;

 private:
  struct state;
  static void run(state& shared);

  std::shared_ptr<state> state_;
};

}  // namespace kclxx::io

namespace kclxx::detail {

/// Releases a lock as long as it lives.
class unlocked {
 public:
  explicit unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~unlocked() { lock_.lock(); }
  unlocked(const unlocked&) = delete;
  unlocked& operator=(const unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace kclxx::detail
