// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/replay/options.hpp"
#include "tool/replay/summary.hpp"

namespace kclxx::tool {

/// How far one shard has come, for who watches from another thread.
struct shard_progress {
  std::atomic<std::uint64_t> played_bytes = 0;  ///< of the file
  std::atomic<std::uint64_t> records = 0;
};

/// Plays the transcript in one file against one child that it starts. What is wrong with the
/// transcript or the child is in the summary.
///
/// Errors: std::system_error when the file cannot be read; start_error.
/// Blocking: until the child has ended.
/// Thread safety: any number at the same time, each in its thread.
replay::summary replay_shard(const std::string& file, const std::vector<std::string>& command,
                             const replay::options& options, shard_progress& progress);

}  // namespace kclxx::tool
