// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>

#include <kclxx/detail/shard_service_wrapper.hpp>

namespace kclxx::asio::detail {

/// How often a wait looks whether the io_context has stopped: stop() notifies nobody.
inline constexpr std::chrono::milliseconds stop_period{200};

/// False for an executor that is not an io_context's own.
inline bool has_stopped(const boost::asio::any_io_executor& executor) {
  const auto* const on = executor.target<boost::asio::io_context::executor_type>();
  return on != nullptr && boost::asio::query(*on, boost::asio::execution::context).stopped();
}

/// On an io_context of the program's own that has stopped, no coroutine would ever run.
/// Errors: std::runtime_error then.
inline void require_running(const boost::asio::any_io_executor& executor) {
  if (!has_stopped(executor)) return;
  throw std::runtime_error(
      "the io_context of asio::parallel has stopped; run it until kclxx::run has returned");
}

/// A callback that waits for coroutines throws when the program's io_context has stopped.
class stopped_context_service final : public kclxx::detail::shard_service_wrapper {
 public:
  stopped_context_service(std::shared_ptr<kclxx::detail::shard_service> inner,
                          boost::asio::any_io_executor executor)
      : shard_service_wrapper(std::move(inner)), executor_(std::move(executor)) {}

  void wait_until_notified(clock::time_point deadline) override {
    require_running(executor_);
    shard_service_wrapper::wait_until_notified(std::min(deadline, now() + stop_period));
  }

 private:
  const boost::asio::any_io_executor executor_;
};

}  // namespace kclxx::asio::detail
