// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/descriptor.hpp"

namespace kclxx::io {

/// Takes the dialogue with the daemon into private, close-on-exec descriptors. From then on fd 1
/// leads to stderr and fd 0 to /dev/null, so that neither a print in a callback nor a program that
/// it starts can reach the dialogue: the daemon would take a print for a line (P4, P5). stdout
/// becomes line-buffered, so that prints are seen even when the process leaves by _Exit. Text that
/// was printed before but not flushed goes to stderr, too.
///
/// A process has one at most. The destructor closes the private descriptors; fd 0 and 1 stay as
/// they are.
class stdio_guard {
 public:
  /// Errors: std::system_error with a message that names the step (for instance when fd 0 or
  /// fd 1 is closed).
  stdio_guard();

  [[nodiscard]] int input() const noexcept { return input_.get(); }
  [[nodiscard]] int output() const noexcept { return output_.get(); }
  [[nodiscard]] bool input_is_terminal() const noexcept { return input_is_terminal_; }

 private:
  descriptor input_;
  descriptor output_;
  bool input_is_terminal_ = false;
};

/// Whether a descriptor is a plain file or a device such as /dev/null, which an event loop cannot
/// watch, and which never lets a reader wait. False for a terminal.
[[nodiscard]] bool is_file(int fd) noexcept;

/// Gives a pipe room for a larger part of a batch. Does nothing to any further descriptor, or when
/// the user's pipes have no more room.
void enlarge_pipe(int fd) noexcept;

/// Gives stdout a buffer of its own, which is written at each end of a line.
void buffer_stdout_by_line() noexcept;

}  // namespace kclxx::io
