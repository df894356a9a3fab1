// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/kcl_version.hpp"
#include "tool/daemon/properties.hpp"

namespace kclxx::tool {

/// The options of `run`, `print-command` and `check`.
struct launch_options {
  kcl_choice kcl;
  std::string file;                 ///< the properties
  std::string jars;                 ///< empty: those in the cache
  std::string cache;                ///< empty: the user's
  std::string heap;                 ///< empty: a share of the memory that there is
  bool is_busy = false;             ///< see launch_settings
  std::string logging;              ///< empty: the one that comes with the tool
  bool is_shared = false;           ///< one process of the program for all shards
  bool is_without_program = false;  ///< check does not look for the program
  std::vector<std::string> java_options;

  [[nodiscard]] kcl_version which() const { return kcl.which; }
};

/// The file with the overrides of the environment.
/// Errors: command_error or std::system_error for a file that cannot be read.
properties read_properties(const launch_options& options);

/// What is wrong with the file, for a daemon that is started here, and with the KCL's version.
std::vector<diagnostic> find_problems(const launch_options& options, const properties& all);

/// Becomes the daemon. Does not return.
/// Errors: command_error.
[[noreturn]] void run_daemon(const launch_options& options);

/// Writes the command that run_daemon would become to stdout, for sh.
/// Errors: command_error.
void print_daemon_command(const launch_options& options);

}  // namespace kclxx::tool
