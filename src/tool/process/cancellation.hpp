// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM or SIGHUP to a command that has started programs: a child gets the end of its
// input, another program the signal, and those that do not leave are killed.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <stop_token>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace kclxx::tool {

/// Thrown by what waits, once the signal came.
class cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

enum class ignored_signals { stay_ignored, are_taken };

/// From here on the first of the signals cancels, and a second one ends the process at once,
/// with its children.
/// A signal that is ignored may stay so: then somebody wants it. A later call takes the signals
/// that an earlier one has left ignored, and leaves no signal that is taken. Thread safety: may be
/// called from any thread. Errors: std::system_error.
void install_signal_handlers(ignored_signals those);

/// While it exists the first of the signals calls the function and does nothing else; the second
/// one then cancels, and the third one ends the process. There is one at a time. The function is
/// called on the signals' thread, and must not wait for the destructor.
class first_signal_call {
 public:
  explicit first_signal_call(std::function<void()> function);
  /// Blocking: while the function runs. Then it is not called any more.
  ~first_signal_call();
  first_signal_call(const first_signal_call&) = delete;
  first_signal_call& operator=(const first_signal_call&) = delete;
};

/// As the first of the signals, without one: `signal` is what programs that were started get.
/// Thread safety: may be called from any thread.
void cancel(int signal);

/// Its stop is requested when the signal comes.
[[nodiscard]] std::stop_token cancellation_token() noexcept;
/// 0, or the signal's number.
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

  /// Blocking: until a handler was called. False: the deadline came first.
  /// A deadline in the past calls a handler that is ready. Errors: cancelled.
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
  // Ends a run_one() that is waiting.
  std::stop_callback<std::function<void()>> on_cancelled_{
      cancellation_token(), [this] { boost::asio::post(context_, [] {}); }};
};

}  // namespace kclxx::tool
