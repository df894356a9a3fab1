// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace kclxx::test {

/// Polls a condition that nothing notifies. True as soon as it holds; false when it does not hold
/// within the limit.
template <class Condition>
bool eventually(Condition holds, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// wait() returns once come() was called.
class moment {
 public:
  void wait() { has_come_.wait(false); }
  void come() {
    has_come_ = true;
    has_come_.notify_all();
  }

 private:
  std::atomic<bool> has_come_ = false;
};

/// How often something has happened, on any thread; another thread can wait for it.
class awaited_count {
 public:
  std::uint64_t operator++() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return ++count_;
  }
  operator std::uint64_t() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  /// True as soon as it is at least `count`; false when it is not within 20 s.
  [[nodiscard]] bool await(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return count_ >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ = 0;
};

}  // namespace kclxx::test
