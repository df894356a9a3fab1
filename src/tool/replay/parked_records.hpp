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
  std::string files;      ///< the names of the files that have them, separated by ", "
  std::string shard;      ///< the id under which they were parked
  std::size_t lines = 0;  ///< more than records when some were parked more than once
  /// The daemon's lines: initialize with another id, the records in order of their positions, and
  /// an orderly stop, so that the child checkpoints what is complete.
  std::string dialogue;
  std::vector<sequence_position> positions;  ///< of the records, in order
};

/// Whether it is a name that read_parked_files() has made for a run.
bool is_run(std::string_view name);

/// `run` is the name of an earlier run that is to be continued; empty: a new name. The name, and
/// the lines that were cut off, are written to stderr. Blocking: while a process is parking a
/// record into a file, at most 5 s for each file. Errors: command_error for what is no file of
/// parked records; std::system_error.
std::vector<parked_shard> read_parked_files(const std::vector<std::string>& files, std::string run);

/// Adds to the result of each shard how many records it has, and how many are complete.
void count_parked(const std::vector<parked_shard>& shards, replay_result& result);

}  // namespace kclxx::replay
