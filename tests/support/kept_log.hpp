// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include <kclxx/log.hpp>

#include "support/text.hpp"

namespace kclxx::test {

/// Keeps log entries from any thread. Another thread can wait for them.
class kept_log {
 public:
  void add(const log_entry& entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(entry);
    changed_.notify_all();
  }
  [[nodiscard]] std::vector<log_entry> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }
  /// True as soon as `count` entries have the text, of those from the index `first` on; false when
  /// they have not within 20 s.
  [[nodiscard]] bool await(const std::string& text, std::size_t count = 1, std::size_t first = 0) {
    return await([&](const log_entry& entry) { return contains(entry.text, text); }, count, first);
  }
  template <std::predicate<const log_entry&> Condition>
  [[nodiscard]] bool await(Condition holds, std::size_t count = 1, std::size_t first = 0) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
      return std::count_if(begin, entries_.end(), holds) >= static_cast<std::ptrdiff_t>(count);
    });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<log_entry> entries_;
};

}  // namespace kclxx::test
