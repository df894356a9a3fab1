// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <kclxx/shard_context.hpp>

namespace kclxx::asio::detail {

/// The timers of an execution context in virtual time: they end by the shard's clock.
/// Thread safety: none; one thread runs at a time then.
class virtual_timers final : public boost::asio::execution_context::service {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  static inline boost::asio::execution_context::id id;
  explicit virtual_timers(boost::asio::execution_context& owner) : service(owner) {}

  /// Must be called before any other function.
  /// Lifetime: the shard must outlive the context.
  void follow(const shard_context& shard) { shard_ = &shard; }
  [[nodiscard]] time_point now() const { return shard_->now(); }

  enum class outcome { pending, ended, cancelled };
  /// At `due` the wait ends, if `how` is still pending, and the timer's handlers are called.
  void add(time_point due, const std::weak_ptr<boost::asio::steady_timer>& timer,
           const std::shared_ptr<outcome>& how) {
    waits_.emplace(due, wait{timer, how});
  }
  /// When the next wait ends that is not over yet.
  [[nodiscard]] std::optional<time_point> next() {
    while (!waits_.empty() && waits_.begin()->second.is_over()) waits_.erase(waits_.begin());
    return waits_.empty() ? std::nullopt : std::optional(waits_.begin()->first);
  }
  /// Ends the waits that are due at `time`.
  void end_waits(time_point time) {
    for (auto due = next(); due && *due <= time; due = next()) {
      const wait ended = waits_.begin()->second;
      waits_.erase(waits_.begin());
      *ended.how.lock() = outcome::ended;
      ended.timer.lock()->cancel();
    }
  }

 private:
  struct wait {
    std::weak_ptr<boost::asio::steady_timer> timer;
    std::weak_ptr<outcome> how;
    [[nodiscard]] bool is_over() const {
      const auto present = how.lock();
      return timer.expired() || !present || *present != outcome::pending;
    }
  };

  void shutdown() noexcept override { waits_.clear(); }

  const shard_context* shard_ = nullptr;
  std::multimap<time_point, wait> waits_;
};

}  // namespace kclxx::asio::detail
