// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include <kclxx/observer.hpp>
#include <kclxx/sequence_position.hpp>

#include "processing/completion_window.hpp"

namespace kclxx::processing {

/// What is reported of a window, and when: to the daemon each watermark once, and while a callback
/// waits at most one a second; to observers when the window has filled or emptied, and once a
/// second in between.
///
/// Pure. Thread safety: none.
class window_reports {
 public:
  using time_point = completion_window::time_point;

  /// When a callback that waits should request a checkpoint; std::nullopt when the watermark has
  /// not moved.
  [[nodiscard]] std::optional<time_point> request_due(
      const completion_window& window) const noexcept {
    return window.begin() == requested_ ? std::nullopt : std::optional(last_request_ + pace);
  }
  /// The position to request now; std::nullopt likewise.
  [[nodiscard]] std::optional<sequence_position> take_request(const completion_window& window,
                                                              time_point now) {
    if (window.begin() == requested_) return std::nullopt;
    requested_ = window.begin();
    last_request_ = now;
    return window.watermark();
  }

  [[nodiscard]] std::optional<observer::window_changed> take_event(const completion_window& window,
                                                                   bool is_full, time_point now) {
    const bool is_emptied = window.is_empty() && !was_empty_;
    if (!is_full && !is_emptied && now - last_event_ < pace) return std::nullopt;
    last_event_ = now;
    was_empty_ = window.is_empty();
    observer::window_changed event{window.incomplete(), window.incomplete_bytes(), std::nullopt,
                                   window.watermark()};
    if (!window.is_empty()) event.oldest = window.oldest_delivery();
    return event;
  }

 private:
  static constexpr std::chrono::seconds pace{1};

  ordinal requested_ = 0;
  time_point last_request_{};
  time_point last_event_{};
  bool was_empty_ = true;
};

}  // namespace kclxx::processing
