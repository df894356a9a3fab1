// SPDX-License-Identifier: Apache-2.0
// How the daemon reads.
#pragma once

#include <array>
#include <string_view>

#include "tool/daemon/kcl_version.hpp"
#include "tool/daemon/properties.hpp"

namespace kclxx::tool {

/// Keys of polling alone: a number above 0 in one of them chooses it where retrievalMode does not.
constexpr std::array<std::string_view, 5> polling_keys{
    "maxRecords", "idleTimeBetweenReadsInMillis", "retryGetRecordsInSeconds",
    "maxGetRecordsThreadPool", "millisBehindLatestThresholdForReducedTps"};

/// Whether the daemon reads by enhanced fan-out.
bool uses_fan_out(const properties& all, kcl_version kcl);

}  // namespace kclxx::tool
