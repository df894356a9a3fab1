// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM or SIGHUP to a command that plays the daemon: its children get the end of their
// input, and those that do not leave are killed, which nobody else would do.
#pragma once

#include <chrono>
#include <exception>

namespace kclxx::cli {

/// Thrown by what waits for a child, once the signal came.
class interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

enum class ignored_signals { stay_ignored, are_taken };

/// From here on the first of the signals interrupts, and a second one ends the process at once.
/// Before any thread is started. A signal that is ignored may stay so: then somebody wants it.
/// Errors: std::system_error.
void take_interruptions(ignored_signals those);

/// Readable for poll(2) once the signal came, and for ever; -1 as long as none is taken.
[[nodiscard]] int interruption_descriptor() noexcept;
/// 0, or the signal's number.
[[nodiscard]] int interruption() noexcept;
/// Errors: interrupted.
void throw_if_interrupted();

/// Ends the process as the signal would have done. Precondition: interruption() != 0.
[[noreturn]] void leave_by_interruption() noexcept;

}  // namespace kclxx::cli
