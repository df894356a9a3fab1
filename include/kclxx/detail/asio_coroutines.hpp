// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 107700
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#endif

namespace kclxx::asio::detail {

using executor_type = boost::asio::any_io_executor;

/// The coroutines of one shard: they can be cancelled and waited for.
/// Thread safety: all functions may be called from any thread.
class coroutines : public std::enable_shared_from_this<coroutines> {
 public:
  /// Runs `function`, which makes the coroutine, and calls `ended` with what it threw.
  template <class Function, class Ended>
  void start(const executor_type& on, Function function, Ended ended) {
    const auto added = std::make_shared<one>(on);
    {
      const std::lock_guard lock(mutex_);
      all_.insert(added);
    }
    // What it threw belongs to `ended` alone: co_spawn would keep it, too, and would destroy it
    // when another thread has it already.
    auto body = [added, function = std::move(function)]() mutable -> boost::asio::awaitable<void> {
      try {
        co_await function();
      } catch (...) {
        added->thrown = std::current_exception();
      }
    };
    auto end = [self = shared_from_this(), added,
                ended = std::move(ended)](std::exception_ptr not_begun) mutable {
      added->has_ended = true;
      ended(not_begun ? std::move(not_begun) : std::move(added->thrown));
      self->remove(added);
    };
    // co_spawn fills the slot, which belongs to the executor.
    boost::asio::post(on, [self = shared_from_this(), added, body = std::move(body),
                           end = std::move(end)]() mutable {
#if BOOST_VERSION >= 107700
      boost::asio::co_spawn(
          added->on, std::move(body),
          boost::asio::bind_cancellation_slot(added->signal.slot(), std::move(end)));
      if (self->is_cancelled()) cancel(*added);  // an earlier signal had nobody to reach
#else
      boost::asio::co_spawn(added->on, std::move(body), std::move(end));
#endif
    });
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& each : all_) {
      boost::asio::post(each->on, [each] { cancel(*each); });
    }
  }

  /// Blocking: until all have ended.
  void wait() {
    std::unique_lock lock(mutex_);
    is_empty_.wait(lock, [this] { return all_.empty(); });
  }

 private:
  struct one {
    explicit one(const executor_type& executor) : on(executor) {}
    executor_type on;
    // What follows belongs to the executor, which runs one function of the coroutine at a time.
    bool has_ended = false;
    std::exception_ptr thrown;
#if BOOST_VERSION >= 107700
    boost::asio::cancellation_signal signal{};
#endif
  };

  void remove(const std::shared_ptr<one>& gone) {
    const std::lock_guard lock(mutex_);
    all_.erase(gone);
    if (all_.empty()) is_empty_.notify_all();
  }

  bool is_cancelled() {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  /// On the executor.
  static void cancel([[maybe_unused]] one& which) {
#if BOOST_VERSION >= 107700
    if (!which.has_ended) which.signal.emit(boost::asio::cancellation_type::all);
#endif
  }

  std::mutex mutex_;
  std::condition_variable is_empty_;
  std::unordered_set<std::shared_ptr<one>> all_;
  bool is_cancelled_ = false;
};

}  // namespace kclxx::asio::detail
