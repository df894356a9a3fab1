// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

#include "tool/process/descriptor.hpp"

namespace kclxx::cli {

/// How a process ended.
struct child_exit {
  int status = 0;  ///< what it left with; 0 when a signal ended it
  int signal = 0;  ///< the signal that ended it; 0 when it left by itself

  bool operator==(const child_exit&) const = default;
};

/// "exit status 3" or "signal 9 (Killed)".
std::string to_string(const child_exit& how);

/// The program cannot be started; what() names it and says why.
class start_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A program, started as the daemon starts its children: with pipes on descriptors 0 and 1.
/// Descriptor 2 is inherited. All ends that this process holds are close-on-exec, and the pipes
/// hold 256 KiB where the system allows it.
///
/// The destructor leaves no process behind: one that still runs is killed. When this process was
/// interrupted the child gets the end of its input first, and 3 s.
/// Thread safety: the pipes may be used from different threads; the rest from one.
class child_process {
 public:
  using clock = std::chrono::steady_clock;
  enum class error_output { inherited, piped };

  /// `command` is the program, looked up in PATH when it has no slash, and its arguments.
  /// Errors: start_error.
  explicit child_process(const std::vector<std::string>& command,
                         error_output error = error_output::inherited);
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// Our end of the pipe to its stdin, of the one from its stdout, and with error_output::piped of
  /// the one from its stderr. Close input for the end of its input.
  descriptor input;
  descriptor output;
  descriptor error;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Readable for poll(2) once the child has ended; stays this object's.

  /// Sends a signal; nothing when the child is known to have ended.
  void kill(int signal) const noexcept;
  /// Blocking: until the child has ended. The pipes stay as they are.
  child_exit wait();
  /// std::nullopt: it still runs at the deadline. Errors: interrupted.
  std::optional<child_exit> wait_until(clock::time_point deadline);

 private:
  bool leaves_by_itself();
  std::optional<child_exit> wait_until(clock::time_point deadline, int other);

  std::string program_;
  pid_t pid_ = -1;
  descriptor pidfd_;
  std::optional<child_exit> exit_;
};

}  // namespace kclxx::cli
