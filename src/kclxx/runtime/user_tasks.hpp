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
#include <kclxx/log.hpp>
#include <kclxx/run_options.hpp>

#include "io/task_thread.hpp"

namespace kclxx::runtime {

/// Writes log lines in order on a thread of its own, and bounds how many wait: a stderr that nobody
/// reads, or a log function that does not return, holds up neither the session nor its end.
///
/// Thread safety: all functions from any thread.
class log_thread {
 public:
  /// Beyond these limits lines are dropped and counted until there is room. Errors have twice the
  /// limits, so that lines of lower levels do not take their place.
  static constexpr std::size_t max_waiting = 10'000;
  static constexpr std::size_t max_waiting_bytes = std::size_t{16} << 20;

  /// `write` is called for each line, and does not throw. It is destroyed when the log is abandoned
  /// and no line is being written. `descriptor` takes texts, and must be open until that moment.
  log_thread(int descriptor, std::function<void(const log_entry&)> write);
  /// Does not wait: lines that were not begun are not written.
  ~log_thread() { abandon(); }
  log_thread(const log_thread&) = delete;
  log_thread& operator=(const log_thread&) = delete;

  void write(log_entry entry) noexcept;
  /// Writes the text as it is.
  void write_text(std::string text) noexcept;
  /// Waits until all earlier lines are written. False when the deadline passed first.
  bool drain(std::chrono::steady_clock::time_point deadline) { return thread_.drain(deadline); }
  /// At the end: waits for lines until `latest` at most, and no longer than `patience` without a
  /// line that is written. After that it drops and counts the lines that wait and that come, and
  /// waits `for_count` at most until the line with their count is written. False when `for_count`
  /// passed first.
  bool finish(std::chrono::milliseconds patience, std::chrono::steady_clock::time_point latest,
              std::chrono::milliseconds for_count);
  /// Drops the lines that were not begun, and all later lines.
  void abandon();

 private:
  struct state;
  [[nodiscard]] std::shared_ptr<state> open_state();
  template <class Line>
  void post(const std::shared_ptr<state>& target, log_level level, std::size_t size, Line line);

  std::mutex mutex_;
  std::shared_ptr<state> state_;  // guarded by the mutex; null once the log is abandoned
  io::task_thread thread_;        // synchronizes itself
};

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
