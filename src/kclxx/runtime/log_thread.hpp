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

/// Writes log lines in order on a task_thread, and bounds how many wait: a stderr that nobody
/// reads, or a log function that does not return, holds up neither the session nor its end.
///
/// Thread safety: all functions from any thread.
class log_thread {
 public:
  /// Further lines are dropped and counted until there is room: errors only beyond twice as much,
  /// so that other lines do not take their place.
  static constexpr std::size_t most_waiting = 10'000;
  static constexpr std::size_t most_waiting_bytes = std::size_t{16} << 20;

  /// `write` is called for each line, and does not throw; it is destroyed once the log is abandoned
  /// and no line is being written. `descriptor` is open until then, and takes texts.
  log_thread(int descriptor, std::function<void(const log_entry&)> write);
  /// Does not wait: what was not begun is not written.
  ~log_thread() { abandon(); }
  log_thread(const log_thread&) = delete;
  log_thread& operator=(const log_thread&) = delete;

  void write(log_entry entry) noexcept;
  /// As it is.
  void write_text(std::string text) noexcept;
  /// Waits until all that came before is written. False when the deadline passed first.
  bool drain(std::chrono::steady_clock::time_point deadline) { return thread_.drain(deadline); }
  /// At the end: waits until `latest` at most, and no longer than `patience` without a line that is
  /// written. Then it drops and counts what is left and all that comes, and waits `for_count` at
  /// most until the line about them is written. False when that passed first.
  bool finish(std::chrono::milliseconds patience, std::chrono::steady_clock::time_point latest,
              std::chrono::milliseconds for_count);
  /// Drops what was not begun, and all that comes from now on.
  void abandon();

 private:
  struct state;
  [[nodiscard]] std::shared_ptr<state> open_state();
  template <class Line>
  void post(const std::shared_ptr<state>& target, log_level level, std::size_t size, Line line);

  std::mutex mutex_;
  std::shared_ptr<state> state_;  // null once it is abandoned
  io::task_thread thread_;
};

/// Before there is a session: to options.log, or to stderr.
void log(const run_options& options, log_level level, const std::string& text);
/// About what prevents a session.
void log_failure(const run_options& options, const std::exception& error);

}  // namespace kclxx::runtime
