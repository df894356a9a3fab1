// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// How a process ended.
struct child_exit {
  int status = 0;  ///< its exit status; 0 when a signal ended it
  int signal = 0;  ///< the signal that ended it; 0 when it exited

  [[nodiscard]] bool is_success() const noexcept { return status == 0 && signal == 0; }
  /// As a shell has it: 128 and the signal's number.
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
class dialogue {
 public:
  using clock = std::chrono::steady_clock;

  enum class event_kind {
    line,           ///< a line from the child, which may be empty
    sent,           ///< all that was queued is in the pipe; reported once
    input_broken,   ///< the child does not read any more; what was queued is dropped
    end_of_output,  ///< the child closed its stdout; reported again from then on
    timed_out,      ///< none of these before the deadline; `line` is one without its newline yet
  };
  struct event {
    event_kind what;
    /// Without its newline; the last one before the end of the output needs none, as for the
    /// daemon's reader. Lifetime: until the next call of next().
    std::string_view line{};
    std::size_t length = 0;  ///< the line's real one, also when it was cut
    /// When the line was read, which may be long before it is returned; of another event when it
    /// happened.
    clock::time_point at = clock::now();
  };
  /// What next() may return besides `sent`, `input_broken` and `timed_out`.
  enum class output { is_read, stays_unread };

  virtual ~dialogue() = default;

  [[nodiscard]] virtual clock::time_point now() const noexcept { return clock::now(); }
  /// Queues a line, or with an empty `end` a part of one.
  /// Precondition: what was queued before is sent, or dropped.
  virtual void send(std::string_view text, std::string_view end = "\n") = 0;
  /// Blocking: until something happened, or the deadline.
  virtual event next(clock::time_point deadline, output child_lines = output::is_read) = 0;
  /// Whether the child has taken all that was sent out of the pipe. True once its input is closed.
  [[nodiscard]] virtual bool is_all_read() = 0;
  /// The end of the child's input. What is queued is dropped.
  virtual void close_input() noexcept = 0;
  /// The daemon dies: all three pipes are closed at once.
  virtual void abandon() noexcept = 0;
  virtual void kill(int signal) noexcept = 0;
  /// Blocking: until the process has ended, and nobody holds its stderr any more, which the daemon
  /// waits for too, but for a child that was killed. std::nullopt: not before the deadline.
  virtual std::optional<child_exit> wait_exit(clock::time_point deadline) = 0;
  /// The end of what the child wrote to stderr, unless that is passed on.
  virtual std::string error_text() = 0;
};

}  // namespace kclxx::tool
