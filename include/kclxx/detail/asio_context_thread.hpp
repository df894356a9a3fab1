// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>

#include <kclxx/detail/asio_virtual_time.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::asio::detail {

/// What runs the shard in virtual time; null in real time.
inline kclxx::detail::virtual_scheduler* scheduler_of(const shard_context& shard) {
  return kclxx::detail::service_access::of(shard)->scheduler();
}

/// The io_context of one shard, and the only thread that runs it, so that the coroutines of the
/// shard need no lock. In virtual time the shard's scheduler runs it.
///
/// Errors: an exception that leaves a function on the io_context, such as a completion handler of
/// the program's, goes to shard_context::fail; the thread continues.
/// Thread safety: executor() may be called from any thread.
/// Lifetime: the shard_context must outlive it. Functions that were posted and have not run are
/// destroyed with it, so nothing may still wait for them.
class context_thread final {
 public:
  /// Errors: std::system_error when the thread cannot be started.
  explicit context_thread(const shard_context& shard)
      : shard_(shard),
        scheduler_(scheduler_of(shard)),
        work_(boost::asio::make_work_guard(context_)) {
    if (scheduler_ == nullptr) {
      thread_ = std::thread([this] { run(); });
    } else {
      timers_ = &boost::asio::use_service<virtual_timers>(context_);
      timers_->follow(shard);
      adopted_ =
          scheduler_->adopt({[this] { return run_one(); }, [this] { return timers_->next(); }});
    }
  }
  context_thread(const context_thread&) = delete;
  context_thread& operator=(const context_thread&) = delete;
  /// Functions that still wait are destroyed, and not called.
  /// Blocking: until the function that runs has returned.
  ~context_thread() {
    if (scheduler_ != nullptr) {
      adopted_.reset();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      context_.stop();
    }
    thread_.join();
  }
  /// Lifetime: an executor must not be used after this object's end.
  [[nodiscard]] boost::asio::any_io_executor executor() { return context_.get_executor(); }
  /// What runs the io_context in virtual time; null in real time.
  [[nodiscard]] kclxx::detail::virtual_scheduler* scheduler() const noexcept { return scheduler_; }

 private:
  /// On the thread, until the destructor stops the io_context.
  void run() {
    for (;;) {
      try {
        context_.run();
        if (is_ending()) return;
        throw std::runtime_error(stopped);
      } catch (...) {
        shard_.fail(std::current_exception());
      }
    }
  }
  /// Runs a function in virtual time. A crash of the child in it ends that function alone.
  bool run_one() {
    try {
      timers_->end_waits(timers_->now());
      const bool has_run = context_.poll_one() > 0;
      if (!context_.stopped()) return has_run;
      context_.restart();
      throw std::runtime_error(stopped);
    } catch (const kclxx::detail::process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended
    } catch (...) {
      shard_.fail(std::current_exception());
    }
    return true;
  }

  /// Whether the destructor has stopped the io_context. If not, the program has: then the
  /// io_context is restarted, since the shard's end needs it.
  bool is_ending() {
    const std::lock_guard lock(mutex_);
    if (!is_ending_) context_.restart();
    return is_ending_;
  }

  static constexpr const char* stopped = "the shard's io_context was stopped by the program";

  const shard_context& shard_;
  kclxx::detail::virtual_scheduler* const scheduler_;
  // Guards is_ending_, so that no restart follows the destructor's stop.
  std::mutex mutex_;
  bool is_ending_ = false;
  boost::asio::io_context context_{1};
  // Without it run() would return as soon as no coroutine waits.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;  // in real time
  // In virtual time.
  virtual_timers* timers_ = nullptr;
  std::shared_ptr<void> adopted_;
};

}  // namespace kclxx::asio::detail
