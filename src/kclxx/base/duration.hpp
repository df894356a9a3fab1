// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kclxx::detail {

/// The longest duration. Its sum with a time does not overflow, and nobody waits for its end.
inline constexpr std::chrono::hours ten_years{24 * 365 * 10};

/// The duration, between 0 and ten years.
constexpr std::chrono::milliseconds clamped(std::chrono::milliseconds duration) {
  return std::clamp<std::chrono::milliseconds>(duration, std::chrono::milliseconds(0), ten_years);
}

// The waits between attempts, of records and of checkpoints.

/// The wait after this many failures, without jitter. It is at least 1 ms, so that nothing is tried
/// without a pause.
inline std::chrono::milliseconds longest_backoff(std::chrono::milliseconds initial,
                                                 std::chrono::milliseconds max, int failures) {
  max = std::max(max, std::chrono::milliseconds(1));
  auto wait = std::clamp(initial, std::chrono::milliseconds(1), max);
  for (int i = 1; i < failures && wait < max; ++i) wait *= 2;
  return std::min(wait, max);
}

/// The wait with jitter: up to a half shorter, so that the shards of a machine do not try again at
/// the same time.
inline std::chrono::milliseconds jittered(std::chrono::milliseconds longest, std::uint64_t random) {
  const auto half = static_cast<std::uint64_t>(longest.count()) / 2;
  return longest - std::chrono::milliseconds(random % (half + 1));
}

}  // namespace kclxx::detail
