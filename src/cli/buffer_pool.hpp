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
        kept_ -= taken->capacity();
      }
    }
    return {taken.release(), [this](io::line_buffer* dropped) {
              const std::unique_ptr<io::line_buffer> owned(dropped);
              const std::lock_guard lock(mutex_);
              if (kept_ + owned->capacity() <= max_kept) {
                kept_ += owned->capacity();
                free_.push_back(std::move(*owned));
              }
            }};
  }

 private:
  // As much as may wait to be recorded: memory fresh from the system costs more than the copying.
  static constexpr std::size_t max_kept = std::size_t{16} << 20;

  std::mutex mutex_;
  std::vector<io::line_buffer> free_;
  std::size_t kept_ = 0;  // bytes in free_
};

}  // namespace kclxx::cli
