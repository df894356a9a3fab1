// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

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

/// Writes a line to options.log, or to stderr, when there is no session.
void log(const run_options& options, log_level level, const std::string& text);
/// Logs an error that prevents a session.
void log_failure(const run_options& options, const std::exception& error);

}  // namespace kclxx::runtime
