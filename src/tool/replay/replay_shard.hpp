// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tool/replay/options.hpp"
#include "tool/replay/summary.hpp"

namespace kclxx::tool {

/// Plays the transcript in one file against one child that it starts. What is wrong with the
/// transcript or the child is in the summary.
///
/// Errors: std::system_error when the file cannot be read; start_error.
/// Blocking: until the child has ended.
/// Thread safety: any number at the same time, each in its thread.
replay::summary replay_shard(const std::string& file, const std::vector<std::string>& command,
                             const replay::options& options);

}  // namespace kclxx::tool
