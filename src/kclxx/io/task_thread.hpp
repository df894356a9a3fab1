// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

namespace kclxx::io {

/// A thread that runs functions in the order of their posting, for what must hold up neither the
/// library's other threads nor the end of a session. The first post() starts it, and it lives until
/// end(), however much time lies between two functions. A function does not throw.
///
/// Thread safety: all functions from any thread.
class task_thread {
 public:
  task_thread();
  /// Calls end().
  ~task_thread() { end(); }
  task_thread(const task_thread&) = delete;
  task_thread& operator=(const task_thread&) = delete;

  /// Starts the thread, unless it runs.
  /// Errors: std::system_error.
  void start();
  /// Without a thread to be had the process ends (docs/architecture.md), since the caller may be in
  /// the middle of an event of the session.
  /// Blocking: no.
  void post(std::function<void()> task) noexcept;
  /// Waits until no function runs or waits. False when the deadline passed first.
  bool drain(std::chrono::steady_clock::time_point deadline);
  /// Lets the thread end when the functions that were posted have run. Does not wait for it. No
  /// function may be posted any more.
  void end() noexcept;
  /// Drops the functions that have not begun, and everything that is posted from now on. The thread
  /// ends as with end().
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
