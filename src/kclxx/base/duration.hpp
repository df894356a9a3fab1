// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace kclxx::detail {

/// Sums of it with a time do not overflow, and nobody waits for its end.
inline constexpr std::chrono::hours ten_years{24 * 365 * 10};

/// The duration, between 0 and ten years.
constexpr std::chrono::milliseconds clamped(std::chrono::milliseconds duration) {
  return std::clamp<std::chrono::milliseconds>(duration, std::chrono::milliseconds(0), ten_years);
}

}  // namespace kclxx::detail
