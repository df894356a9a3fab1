// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tool/replay/parked_records.hpp"
#include "tool/replay/replay_result.hpp"

namespace kclxx::tool {

/// `run` is the name of an earlier run to be continued; without one, a new one is made. It and what
/// was cut off are named on stderr. Blocking: a process that is just parking a record.
/// Errors: command_error for what is no file of parked records; std::system_error.
std::vector<replay::parked_shard> read_parked_files(const std::vector<std::string>& files,
                                                    std::string run);

/// Adds to the result of each shard how many records it has, and how many are complete.
void count_parked(const std::vector<replay::parked_shard>& shards, replay_result& played);

}  // namespace kclxx::tool
