// SPDX-License-Identifier: Apache-2.0
// Moves the positions in a lease table: kclxx leases --rewind and --restore.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "tool/command_error.hpp"

namespace kclxx::host {

struct rewind_options {
  std::string table;
  std::string target;            ///< a time, TRIM_HORIZON or LATEST; empty: `file` is restored
  std::string file;              ///< what an earlier move has left
  std::set<std::string> shards;  ///< empty: all
  std::string stream;            ///< the application's; only `target` needs it
  bool is_to_be_written = false;
  std::chrono::milliseconds interval{0};  ///< between the two scans that tell whether workers run
  std::vector<std::string> for_dynamodb;  ///< options of aws
  std::vector<std::string> for_kinesis;

  [[nodiscard]] bool has_chosen(const std::string& shard) const {
    return shards.empty() || shards.contains(shard);
  }
};

/// Prints the old and the new position of each shard, and writes the new ones if that is asked for
/// and no worker renews a lease. A row is written only if it is still as it was read.
/// Status: finding when something is not moved as it should be.
/// Blocking: for the interval, and as long as aws. Errors: command_error, cancelled;
/// std::system_error for a file that cannot be read.
tool::command_status run_rewind(const rewind_options& chosen);

}  // namespace kclxx::host
