// SPDX-License-Identifier: Apache-2.0
// How long the daemon lets a callback take, and how it reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tool/daemon/kcl_version.hpp"
#include "tool/daemon/properties.hpp"

namespace kclxx::tool {

struct daemon_limits {
  /// Unset: the daemon does not wait at all (2.x, 3.x).
  std::optional<std::int64_t> shutdown_grace_millis{};
  /// Unset: it waits indefinitely.
  std::optional<std::int64_t> timeout_in_seconds{};
  bool uses_fan_out = false;  ///< then a callback should return within fan_out_millis
};

constexpr std::int64_t fan_out_millis = 30'000;

/// Keys of polling alone: a number above 0 in one of them chooses it where retrievalMode does not.
constexpr std::array<std::string_view, 5> polling_keys{
    "maxRecords", "idleTimeBetweenReadsInMillis", "retryGetRecordsInSeconds",
    "maxGetRecordsThreadPool", "millisBehindLatestThresholdForReducedTps"};

daemon_limits limits_of(const properties& all, kcl_version kcl);

}  // namespace kclxx::tool
