// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tool/replay/parked_records.hpp"
#include "tool/replay/replay_result.hpp"

namespace kclxx::tool {

/// What was cut off is named on stderr. Blocking: a process that is just parking a record.
/// Errors: command_error for what is no file of parked records; std::system_error.
std::vector<replay::parked_shard> read_parked_files(const std::vector<std::string>& files);

/// Adds to the result of each shard how many records it has, and how many are complete.
void count_parked(const std::vector<replay::parked_shard>& shards, replay_result& played);

}  // namespace kclxx::tool
