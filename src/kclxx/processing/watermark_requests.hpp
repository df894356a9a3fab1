// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include <kclxx/sequence_position.hpp>

#include "processing/completion_window.hpp"

namespace kclxx::processing {

/// Which checkpoints were requested: each watermark once, and while a callback waits at most one a
/// second.
///
/// Thread safety: none.
class watermark_requests {
 public:
  using time_point = completion_window::time_point;

  /// When a callback that waits should request one; std::nullopt when the watermark has not moved.
  [[nodiscard]] std::optional<time_point> due(const completion_window& window) const noexcept {
    return window.watermark() == requested_ ? std::nullopt : std::optional(last_ + pace);
  }
  /// The position to request now; std::nullopt likewise.
  [[nodiscard]] std::optional<sequence_position> take(const completion_window& window,
                                                      time_point now) {
    if (window.watermark() == requested_) return std::nullopt;
    requested_ = window.watermark();
    last_ = now;
    return window.position();
  }

 private:
  static constexpr std::chrono::seconds pace{1};

  arrival requested_ = 0;
  time_point last_{};
};

}  // namespace kclxx::processing
