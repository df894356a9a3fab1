// SPDX-License-Identifier: Apache-2.0
// What SIGINT, SIGTERM or SIGHUP does to a command that has started programs: a child gets the end
// of its input, another program the signal, and a program that does not leave is killed.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <stop_token>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace kclxx::tool {

/// Functions that wait throw it once the command is cancelled.
class cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

enum class ignored_signals { stay_ignored, are_taken };

/// From now on the first signal cancels the command, and a second signal ends the process at once,
/// with its children. `ignored`: what becomes of a signal that is ignored where the tool is
/// started. A later call takes signals that an earlier call has left ignored; it gives no signal
/// back. Thread safety: may be called from any thread. Errors: std::system_error.
void install_signal_handlers(ignored_signals ignored);

/// While it exists, the first signal calls the function and does nothing else; the second signal
/// then cancels, and the third one ends the process. There is one such object at a time. The
/// function is called on the signals' thread, and must not wait for the destructor.
class first_signal_call {
 public:
  explicit first_signal_call(std::function<void()> function);
  /// The function is not called after it. Blocking: while the function runs.
  ~first_signal_call();
  first_signal_call(const first_signal_call&) = delete;
  first_signal_call& operator=(const first_signal_call&) = delete;
};

/// Cancels the command as `signal` would. Thread safety: may be called from any thread.
void cancel(int signal);

/// A token whose stop is requested when the command is cancelled.
[[nodiscard]] std::stop_token cancellation_token() noexcept;
/// The number of the signal that has cancelled the command; 0 when none has.
[[nodiscard]] int cancellation_signal() noexcept;
/// Errors: cancelled.
void throw_if_cancelled();

/// Ends the process as the signal would have done. Precondition: cancellation_signal() != 0.
[[noreturn]] void leave_by_cancellation() noexcept;

/// An io_context for one thread, whose waiting ends when the command is cancelled.
class cancellable_loop {
 public:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }

  /// Calls one handler. False: none was ready before the deadline, which may lie in the past.
  /// Blocking: until the deadline. Errors: cancelled.
  bool run_one(clock::time_point deadline) {
    throw_if_cancelled();
    const bool has_run = context_.run_one_until(deadline) > 0 || context_.poll_one() > 0;
    throw_if_cancelled();
    return has_run;
  }

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  /// Ends a run_one() that is waiting: it then throws.
  std::stop_callback<std::function<void()>> on_cancelled_{
      cancellation_token(), [this] { boost::asio::post(context_, [] {}); }};
};

}  // namespace kclxx::tool
