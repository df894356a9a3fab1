// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "tool/replay/replay_result.hpp"

namespace kclxx::replay {

/// The parked records of one shard, as the daemon would deliver them.
struct parked_shard {
  std::string files;      ///< where they come from
  std::string shard;      ///< where they were parked; they come again under another name
  std::size_t lines = 0;  ///< with those of records that were parked more than once
  /// The daemon's lines: initialize, the records in order of their positions, and an orderly stop,
  /// so that the child checkpoints what is complete.
  std::string dialogue;
  std::vector<sequence_position> positions;  ///< in order
};

/// Whether it is a name that read_parked_files() has made for a run.
bool is_run(std::string_view name);

/// `run` is the name of an earlier run to be continued; without one, a new one is made. It and what
/// was cut off are named on stderr. Blocking: a process that is just parking a record.
/// Errors: command_error for what is no file of parked records; std::system_error.
std::vector<parked_shard> read_parked_files(const std::vector<std::string>& files, std::string run);

/// Adds to the result of each shard how many records it has, and how many are complete.
void count_parked(const std::vector<parked_shard>& shards, replay_result& played);

}  // namespace kclxx::replay
