// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include <kclxx/observer.hpp>

#include "processing/completion_window.hpp"

namespace kclxx::processing {

/// When observers get an event about the window: when it has filled or emptied, and once a second
/// in between. Thread safety: none.
class window_events {
 public:
  using time_point = completion_window::time_point;

  [[nodiscard]] std::optional<window_changed> take(const completion_window& window, bool is_full,
                                                   time_point now) {
    const bool is_emptied = window.is_empty() && !was_empty_;
    if (!is_full && !is_emptied && now - last_ < std::chrono::seconds(1)) return std::nullopt;
    last_ = now;
    was_empty_ = window.is_empty();
    window_changed event{window.incomplete(), window.incomplete_bytes(), std::nullopt,
                         window.position()};
    if (!window.is_empty()) event.oldest = window.oldest_arrival();
    return event;
  }

 private:
  time_point last_{};
  bool was_empty_ = true;
};

}  // namespace kclxx::processing
