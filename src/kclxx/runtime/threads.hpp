// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include <kclxx/detail/shard_service.hpp>

namespace kclxx::runtime {

/// Returns true at the deadline, false as soon as `stop` stops. Blocking: yes.
bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);

/// What shard_service::wait_until_notified waits for.
/// Thread safety: one thread waits; notify from any thread.
class notification {
 public:
  void notify() {
    const std::lock_guard lock(mutex_);
    is_notified_ = true;
    notified_.notify_one();
  }
  void wait_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    notified_.wait_until(lock, stop, deadline, [this] { return is_notified_; });
    is_notified_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any notified_;
  bool is_notified_ = false;
};

/// Threads of the machine. A function that throws ends the process.
class real_thread_pool final : public detail::thread_pool {
 public:
  /// Errors: std::system_error.
  explicit real_thread_pool(std::size_t threads);
  ~real_thread_pool() override;

  void post(std::function<void()> function) override;

 private:
  void run();
  void end();

  std::mutex mutex_;
  std::condition_variable has_work_;
  std::deque<std::function<void()>> functions_;
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kclxx::runtime
