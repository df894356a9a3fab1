// SPDX-License-Identifier: Apache-2.0
// The command and the environment that start a daemon.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tool/daemon/kcl_version.hpp"
#include "tool/daemon/properties.hpp"

namespace kclxx::tool {

struct launch_settings {
  kcl_version which = kcl_version::kcl3;
  std::string java = "java";  ///< the program
  std::string class_path;
  /// For shards that deliver what they can, all the time: Java may use memory and compile more.
  bool is_busy = false;
  std::string properties_file;
  std::string logging_file;
  std::vector<std::string> java_options;  ///< the user's, which come after ours
  /// What Java reads from its variables: ours give way to them too.
  std::vector<std::string> java_variables;
};

struct launch {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< in addition
};

/// What the daemon will be called among the workers: the id in the properties, or `made`, which
/// then is added to them. Both keys that KCL 2.x and 3.x have for it become one.
std::string settle_worker_id(properties& all, kcl_version kcl, const std::string& made);

/// The stream's name; with KCL 2.x and 3.x an ARN comes first. Empty: there is none.
std::string stream_name(const properties& all, kcl_version kcl);

/// Puts the launcher in front of the program, unless one is there.
void share_children(properties& all, const std::string& launcher);

/// `all` is what the file will contain, with its worker id settled. The environment is what the
/// library reads: the names that shard_context shows, and the daemon's limits.
launch compose(const launch_settings& settings, const properties& all);

/// The options of Java that are ours, without those that an option in `given`, the user's, decides.
/// What they save was measured: docs/performance.md. Java 8 knows all since its update 191.
std::vector<std::string> java_options(bool is_busy, const std::vector<std::string>& given);

/// A text that goes to the command as a file, on a descriptor.
struct inline_file {
  int descriptor = -1;
  std::string text;  ///< whole lines
};

/// The same for a person: a command for sh, ready to be run.
std::string shell_command(const launch& start, const std::vector<inline_file>& files);

}  // namespace kclxx::tool
