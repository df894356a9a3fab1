// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// How a process ended.
struct child_exit {
  int status = 0;  ///< its exit status; 0 when a signal ended it
  int signal = 0;  ///< the signal that ended it; 0 when it exited

  [[nodiscard]] bool is_success() const noexcept { return status == 0 && signal == 0; }
  /// The status that a shell reports: after a signal it is 128 + the signal's number.
  [[nodiscard]] int shell_status() const noexcept { return signal == 0 ? status : 128 + signal; }
  bool operator==(const child_exit&) const = default;
};

/// "exit status 3" or "signal 9".
inline std::string to_string(const child_exit& exit) {
  return exit.signal == 0 ? "exit status " + std::to_string(exit.status)
                          : "signal " + std::to_string(exit.signal);
}

/// Both directions of the dialogue with one child, and the clock that it is timed with.
///
/// 1. send() queues a line. 2. next() writes it, and returns one event. 3. In the end
/// close_input(), next() until end_of_output, and wait_exit().
/// Thread safety: none.
class dialogue {
 public:
  using clock = std::chrono::steady_clock;

  enum class event_kind {
    line,           ///< a line from the child, which may be empty
    sent,           ///< all that was queued is in the pipe; reported once
    input_broken,   ///< the child does not read its input; what was queued is dropped
    end_of_output,  ///< the child closed its stdout; reported again from then on
    timed_out,      ///< nothing happened before the deadline; `line` has no newline yet
  };
  struct event {
    event_kind what;
    /// The line without its newline. The last line of the output needs no newline, as for the
    /// daemon's reader. Lifetime: until the next call of next().
    std::string_view line{};
    /// When the event happened. A line was read at this time, maybe long before it is returned.
    clock::time_point at = clock::now();
  };
  /// Whether next() may return `line` and `end_of_output`.
  enum class output { is_read, stays_unread };

  virtual ~dialogue() = default;

  [[nodiscard]] virtual clock::time_point now() const noexcept { return clock::now(); }
  /// Queues a line, or with an empty `end` a part of a line.
  /// Precondition: what was queued before is sent, or dropped.
  virtual void send(std::string_view text, std::string_view end = "\n") = 0;
  /// Blocking: until something happened, or the deadline.
  virtual event next(clock::time_point deadline, output child_lines = output::is_read) = 0;
  /// Whether the child has read all that was sent out of the pipe. True once its input is closed.
  [[nodiscard]] virtual bool is_all_read() = 0;
  /// Ends the child's input. What is queued is dropped.
  virtual void close_input() noexcept = 0;
  /// Closes all three pipes at once, as when the daemon dies.
  virtual void abandon() noexcept = 0;
  virtual void kill(int signal) noexcept = 0;
  /// std::nullopt: the child had not ended at the deadline.
  /// Blocking: until the process has ended, and no process holds its stderr, which the daemon waits
  /// for, too. It does not wait for the stderr of a child that was killed.
  virtual std::optional<child_exit> wait_exit(clock::time_point deadline) = 0;
  /// The end of what the child has written to stderr; empty when that is passed on.
  virtual std::string error_text() = 0;
};

}  // namespace kclxx::tool
