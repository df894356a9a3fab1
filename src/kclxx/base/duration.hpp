// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace kclxx::detail {

/// The duration, between 0 and ten years: sums with a time do not overflow.
constexpr std::chrono::milliseconds clamped(std::chrono::milliseconds duration) {
  return std::clamp<std::chrono::milliseconds>(duration, std::chrono::milliseconds(0),
                                               std::chrono::hours(24 * 365 * 10));
}

}  // namespace kclxx::detail
