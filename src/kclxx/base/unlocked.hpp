// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace kclxx::detail {

/// Releases a lock as long as it lives.
class unlocked {
 public:
  explicit unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~unlocked() { lock_.lock(); }
  unlocked(const unlocked&) = delete;
  unlocked& operator=(const unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace kclxx::detail
