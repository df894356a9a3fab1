// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
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

/// The io_context of one shard, and the thread that runs it. One thread, so that the coroutines of
/// a shard need no lock. In the test kit a thread of the kit runs it, in virtual time.
///
/// Errors: an exception that leaves a function on the io_context, such as a completion handler of
/// the program's, goes to shard_context::fail; the thread continues.
/// Thread safety: executor() may be called from any thread.
/// Lifetime: the shard_context must outlive it. Functions that were posted and have not run are
/// destroyed with it, so nothing may still wait for them.
class context_thread final : private kclxx::detail::virtual_executor {
 public:
  /// Errors: std::system_error when the thread cannot be started.
  explicit context_thread(const shard_context& shard)
      : shard_(shard), work_(boost::asio::make_work_guard(context_)) {
    if (kclxx::detail::service_access::of(shard)->is_virtual()) {
      kclxx::detail::service_access::of(shard)->adopt_executor(*this);
      time_ = &boost::asio::use_service<virtual_time>(context_);
      time_->follow(shard);
    } else {
      thread_ = std::thread([this] { run(); });
    }
  }
  context_thread(const context_thread&) = delete;
  context_thread& operator=(const context_thread&) = delete;
  /// What still waits is destroyed, and not called.
  /// Blocking: until the function that runs has returned.
  ~context_thread() override {
    if (time_ != nullptr) {
      kclxx::detail::service_access::of(shard_)->release_executor(*this);
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
  [[nodiscard]] bool is_virtual() const noexcept { return time_ != nullptr; }
  /// In virtual time: false when it is not done within the grace time.
  bool run_until(const std::function<bool()>& is_done) {
    return kclxx::detail::service_access::of(shard_)->wait_at_end(is_done);
  }

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
  /// The same for one function, in virtual time. A crash ends that function alone.
  bool run_one() override {
    try {
      time_->end_waits(time_->now());
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
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> next_timer() override {
    return time_->next();
  }

  /// If not, the io_context runs on: the shard's end needs it.
  bool is_ending() {
    const std::lock_guard lock(mutex_);
    if (!is_ending_) context_.restart();
    return is_ending_;
  }

  static constexpr const char* stopped = "the shard's io_context was stopped by the program";

  const shard_context& shard_;
  std::mutex mutex_;  // between the destructor's stop and a restart
  bool is_ending_ = false;
  boost::asio::io_context context_{1};
  // Without it run() would return as soon as no coroutine waits.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
  virtual_time* time_ = nullptr;  // in the test kit
};

/// Errors: std::logic_error in the test kit, which runs no executor of the program's own.
inline void require_real_time(const shard_context& shard) {
  if (!kclxx::detail::service_access::of(shard)->is_virtual()) return;
  throw std::logic_error(
      "asio::parallel on an executor of the program's own cannot run in the test kit's virtual "
      "time: "
      "leave the executor out");
}

}  // namespace kclxx::asio::detail
