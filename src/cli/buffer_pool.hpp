// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "io/line_reader.hpp"

namespace kclxx::cli {

/// Buffers for lines, used again when their last owner drops them.
///
/// Thread safety: buffers may be taken and dropped on any thread. Lifetime: outlives its buffers.
class buffer_pool {
 public:
  using buffer = std::shared_ptr<io::line_buffer>;

  [[nodiscard]] buffer take() {
    auto taken = std::make_unique<io::line_buffer>();
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        *taken = std::move(free_.back());
        free_.pop_back();
      }
    }
    return {taken.release(), [this](io::line_buffer* dropped) {
              const std::unique_ptr<io::line_buffer> owned(dropped);
              const std::lock_guard lock(mutex_);
              if (free_.size() < max_free && owned->capacity() <= max_kept) {
                free_.push_back(std::move(*owned));
              }
            }};
  }

 private:
  static constexpr std::size_t max_free = 4;
  static constexpr std::size_t max_kept = std::size_t{8} << 20;

  std::mutex mutex_;
  std::vector<io::line_buffer> free_;
};

}  // namespace kclxx::cli
