// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "tool/replay/replay_result.hpp"

namespace kclxx::tool {

/// The page of --report: one file that needs nothing from anywhere.
/// Precondition: the shards were played with options::keeps_timeline.
void print_report(std::ostream& out, const replay_result& result);

}  // namespace kclxx::tool
