// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

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
