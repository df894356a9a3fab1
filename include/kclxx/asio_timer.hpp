// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <kclxx/shard_context.hpp>

namespace kclxx::asio {

namespace detail {

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

}  // namespace detail

/// A boost::asio::steady_timer that uses the shard's virtual clock in the test kit. For that, make
/// it with the executor of a coroutine of `asio::parallel`.
///
///     kclxx::asio::timer pause(co_await boost::asio::this_coro::executor, 100ms);
///     co_await pause.async_wait(boost::asio::use_awaitable);
///
/// Thread safety: none, as of Asio's timers.
class timer {
 public:
  /// As of boost::asio::steady_timer.
  using duration = std::chrono::steady_clock::duration;

  /// A timer that expires when `time` has passed, by the clock of the executor's shard.
  timer(const boost::asio::any_io_executor& executor, duration time)
      : timer_(std::make_shared<boost::asio::steady_timer>(executor)),
        timers_(timers_of(executor)) {
    expires_after(time);
  }
  timer(timer&&) = default;
  timer& operator=(timer&&) = default;
  /// Waits end with boost::asio::error::operation_aborted.
  ~timer() = default;

  /// Sets the time from now. Earlier waits end with boost::asio::error::operation_aborted.
  void expires_after(duration time) {
    if (timers_ == nullptr) {
      timer_->expires_after(time);
      return;
    }
    begin_anew();
    const auto now = timers_->now();
    virtual_expiry_ = now + std::min(time, std::chrono::steady_clock::time_point::max() - now);
    timer_->expires_at(std::chrono::steady_clock::time_point::max());
  }
  /// Waits end with boost::asio::error::operation_aborted.
  void cancel() {
    if (timers_ != nullptr) begin_anew();
    timer_->cancel();
  }

  /// The signature of the handler is `void(boost::system::error_code)`.
  template <class CompletionToken>
  auto async_wait(CompletionToken&& token) {
    if (virtual_wait_ && *virtual_wait_ == outcome::ended) begin_anew();
    return boost::asio::async_compose<CompletionToken, void(boost::system::error_code)>(
        [timer = std::weak_ptr(timer_), timers = timers_, due = virtual_expiry_,
         wait = virtual_wait_,
         has_begun = false](auto& self, boost::system::error_code ec = {}) mutable {
          if (std::exchange(has_begun, true)) {
            if (wait && *wait == outcome::ended) ec = {};
            return self.complete(ec);
          }
          const auto waited = timer.lock();
          if (timers != nullptr) timers->add(due, timer, wait);
          waited->async_wait(std::move(self));
        },
        token, *timer_);
  }

 private:
  using outcome = detail::virtual_timers::outcome;

  void begin_anew() {
    if (virtual_wait_ && *virtual_wait_ == outcome::pending) *virtual_wait_ = outcome::cancelled;
    virtual_wait_ = std::make_shared<outcome>(outcome::pending);
  }
  static detail::virtual_timers* timers_of(const boost::asio::any_io_executor& executor) {
    auto& context = boost::asio::query(executor, boost::asio::execution::context);
    if (!boost::asio::has_service<detail::virtual_timers>(context)) return nullptr;
    return &boost::asio::use_service<detail::virtual_timers>(context);
  }

  std::shared_ptr<boost::asio::steady_timer> timer_;
  // The members below are for virtual time alone; in real time timers_ is null.
  detail::virtual_timers* timers_;
  std::shared_ptr<outcome> virtual_wait_;
  std::chrono::steady_clock::time_point virtual_expiry_;
};

}  // namespace kclxx::asio
