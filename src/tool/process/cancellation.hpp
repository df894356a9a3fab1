// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM or SIGHUP to a command that plays the daemon: its children get the end of their
// input, and those that do not leave are killed, which nobody else would do.
#pragma once

#include <exception>
#include <functional>
#include <stop_token>

namespace kclxx::tool {

/// Thrown by what waits, once the signal came.
class cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

enum class ignored_signals { stay_ignored, are_taken };

/// From here on the first of the signals cancels, and a second one ends the process at once,
/// with its children.
/// A signal that is ignored may stay so: then somebody wants it.
/// With `before` the first signal calls that alone, on a thread of its own, and the next ones are
/// as the first and the second. Errors: std::system_error.
void install_signal_handlers(ignored_signals those, std::function<void()> before = {});

/// Its stop is requested when the signal comes.
[[nodiscard]] std::stop_token cancellation_token() noexcept;
/// 0, or the signal's number.
[[nodiscard]] int cancellation_signal() noexcept;
/// Errors: cancelled.
void throw_if_cancelled();

/// Ends the process as the signal would have done. Precondition: cancellation_signal() != 0.
[[noreturn]] void leave_by_cancellation() noexcept;

}  // namespace kclxx::tool
