// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
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

/// The coroutines of one shard: they can be cancelled and waited for. Cancellation reaches them
/// through a boost::asio::cancellation_signal each.
///
/// 1. start() each coroutine.
/// 2. cancel(), when a stop is requested. A coroutine that is started later is cancelled as it
///    begins.
/// 3. wait(), before the objects to which the coroutines refer are destroyed, or keep() these. No
///    start() may follow.
///
/// Thread safety: all functions may be called from any thread.
/// Lifetime: held by a std::shared_ptr; a coroutine that runs keeps it alive.
class coroutines : public std::enable_shared_from_this<coroutines> {
 public:
  /// Runs `function`, which makes the coroutine, and calls `ended` with what it threw: a null
  /// pointer when it returned. Both run on `executor`. Asio may destroy both uncalled, with what
  /// the coroutine waits for or with the executor: that ends the coroutine, too.
  ///
  /// `executor` must run one function at a time, as a strand does: the state of a coroutine has no
  /// lock.
  /// Errors: std::bad_alloc.
  /// Blocking: no. The coroutine does not begin within this call.
  template <class Function, class Ended>
  void start(const boost::asio::any_io_executor& executor, Function function, Ended ended) {
    // Known to cancel() and wait() before it begins.
    auto added = std::make_shared<entry>(executor);
    end_function<Ended> end{registration(shared_from_this(), added), std::move(ended)};
    // Only `ended` gets the exception: co_spawn would keep a reference, and release it while
    // another thread uses the exception.
    auto body = [added, function = std::move(function)]() mutable -> boost::asio::awaitable<void> {
      try {
        co_await function();
      } catch (...) {
        added->thrown = std::current_exception();
      }
    };
    // co_spawn fills the slot, which belongs to the executor.
    boost::asio::post(executor, [self = shared_from_this(), added, body = std::move(body),
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

  /// Cancels every coroutine that runs now or is started later; without effect before Boost 1.77,
  /// whose coroutines cannot be cancelled.
  /// Blocking: no. It returns before the coroutines have noticed.
  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& running : all_) {
      boost::asio::post(running->on, [running] { cancel(*running); });
    }
  }

  [[nodiscard]] bool is_empty() {
    const std::lock_guard lock(mutex_);
    return all_.empty();
  }

  /// Waits for the coroutines; without cancel() that can take as long as the program's code does.
  /// Blocking: until all have ended, or for `time`. So not on a thread that runs them.
  [[nodiscard]] bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return is_empty_.wait_for(lock, time, [this] { return all_.empty(); });
  }

  /// Keeps the contents until the last coroutine has ended, or is destroyed with its execution
  /// context.
  void keep(std::shared_ptr<void> contents) {
    const std::lock_guard lock(mutex_);
    kept_ = std::move(contents);
  }

 private:
  /// A coroutine, from start() to its end. Shared by `all_`, by the functions that wait on the
  /// executor, and by the coroutine.
  struct entry {
    explicit entry(const boost::asio::any_io_executor& executor) : on(executor) {}
    // A strand, or the only thread of a context_thread.
    boost::asio::any_io_executor on;
    // Asio may destroy the coroutine on any thread.
    std::atomic<bool> has_ended = false;
    // The members below belong to the executor, which runs one function of the coroutine at a time.
    // So they need no lock, and cancel() posts the function that emits the signal.
    std::exception_ptr thrown;  // until `ended` takes it
#if BOOST_VERSION >= 107700
    boost::asio::cancellation_signal signal{};
#endif
  };

  /// In `all_`, from its construction until its end: that of the function that holds it, whether
  /// Asio calls that function or only destroys it.
  class registration {
   public:
    registration(std::shared_ptr<coroutines> all, std::shared_ptr<entry> added)
        : all_(std::move(all)), added_(std::move(added)) {
      const std::lock_guard lock(all_->mutex_);
      all_->all_.insert(added_);
    }
    registration(registration&&) noexcept = default;
    registration(const registration&) = delete;
    registration& operator=(const registration&) = delete;
    registration& operator=(registration&&) = delete;
    ~registration() {
      if (!added_) return;
      added_->has_ended = true;
      all_->remove(added_);
    }
    [[nodiscard]] entry& coroutine() const { return *added_; }

   private:
    std::shared_ptr<coroutines> all_;
    std::shared_ptr<entry> added_;
  };

  /// What co_spawn calls at the coroutine's end. Its members end in this order: `ended`, which has
  /// the program's objects, then `known`.
  template <class Ended>
  struct end_function {
    registration known;
    Ended ended;
    void operator()(std::exception_ptr not_begun) {
      known.coroutine().has_ended = true;
      ended(not_begun ? std::move(not_begun) : std::move(known.coroutine().thrown));
    }
  };

  /// Called last for a coroutine. wait() may return after it.
  void remove(const std::shared_ptr<entry>& gone) {
    const std::lock_guard lock(mutex_);
    all_.erase(gone);
    if (all_.empty()) is_empty_.notify_all();
  }

  /// Asked on the executor, when cancel() may have run since start().
  bool is_cancelled() {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  /// On the executor: a signal may be emitted only where its coroutine runs, and only until the
  /// coroutine has ended.
  static void cancel([[maybe_unused]] entry& coroutine) {
#if BOOST_VERSION >= 107700
    if (!coroutine.has_ended) coroutine.signal.emit(boost::asio::cancellation_type::all);
#endif
  }

  // Guards the members below. It is not held while code of the program runs.
  std::mutex mutex_;
  std::condition_variable is_empty_;
  // The coroutines that were started and have not ended. wait() waits until there is none.
  std::unordered_set<std::shared_ptr<entry>> all_;
  // Never reset: the shard is over.
  bool is_cancelled_ = false;
  std::shared_ptr<void> kept_;
};

}  // namespace kclxx::asio::detail
