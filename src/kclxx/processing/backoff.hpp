// SPDX-License-Identifier: Apache-2.0
// The waits between attempts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <kclxx/processing/failure_policy.hpp>

namespace kclxx::processing {

/// Never 0, so that nothing is tried in a hot loop; a day at most, so that sums do not overflow.
inline std::chrono::milliseconds wait_of(std::chrono::milliseconds duration) {
  return std::clamp<std::chrono::milliseconds>(duration, std::chrono::milliseconds(1),
                                               std::chrono::hours(24));
}

/// The wait after so many failures, without jitter.
inline std::chrono::milliseconds longest_backoff(const failure_policy& policy, int failures) {
  const auto most = wait_of(policy.max_backoff);
  auto wait = std::min(wait_of(policy.initial_backoff), most);
  for (int i = 1; i < failures && wait < most; ++i) wait *= 2;
  return std::min(wait, most);
}

/// Up to a half shorter.
inline std::chrono::milliseconds jittered(std::chrono::milliseconds longest, std::uint64_t random) {
  const auto half = static_cast<std::uint64_t>(longest.count()) / 2;
  return longest - std::chrono::milliseconds(random % (half + 1));
}

}  // namespace kclxx::processing
