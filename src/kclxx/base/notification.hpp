// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace kclxx::detail {

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

}  // namespace kclxx::detail
