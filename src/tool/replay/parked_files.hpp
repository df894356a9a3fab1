// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tool/replay/parked_records.hpp"
#include "tool/replay/replay_result.hpp"
#include "tool/replay/temporary_directory.hpp"

namespace kclxx::tool {

/// Files of parked records, made into transcripts that can be replayed: one for each shard, in a
/// directory that is removed at the end of its life, and that only its owner can read.
class parked_files {
 public:
  /// What was cut off is named on stderr.
  /// Errors: command_error for what is no file of parked records; std::system_error.
  explicit parked_files(const std::vector<std::string>& files);

  [[nodiscard]] std::vector<std::string> transcripts() const;
  /// Names each shard's files in the result, and counts its records.
  void describe(replay_result& played) const;

 private:
  [[nodiscard]] std::filesystem::path transcript(std::size_t shard) const;

  std::vector<replay::parked_shard> shards_;
  temporary_directory directory_{"parked"};
};

}  // namespace kclxx::tool
