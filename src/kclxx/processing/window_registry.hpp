// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <kclxx/processing/window_monitor.hpp>

#include "processing/dispatcher.hpp"

namespace kclxx::detail {

/// The shards that a window_monitor sees. Thread safety: all functions from any thread.
class window_registry {
 public:
  void add(const std::weak_ptr<processing::dispatcher>& one) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& other) { return other.expired(); });
    all_.push_back(one);
  }
  [[nodiscard]] std::vector<window_state> states() {
    std::vector<std::weak_ptr<processing::dispatcher>> all;
    {
      const std::lock_guard lock(mutex_);
      all = all_;
    }
    std::vector<window_state> result;
    for (const auto& one : all) {
      if (const auto alive = one.lock()) result.push_back(alive->state());
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<processing::dispatcher>> all_;
};

}  // namespace kclxx::detail
