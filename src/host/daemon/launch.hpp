// SPDX-License-Identifier: Apache-2.0
// The command and the environment that start a daemon.
#pragma once

#include <string>
#include <vector>

#include "host/daemon/check.hpp"
#include "host/daemon/jars.hpp"
#include "host/daemon/properties.hpp"

namespace kclxx::host {

/// What the command line of `run`, `print-command` and `check` says.
struct launch_options {
  kcl_choice kcl;
  std::vector<std::string> files;  ///< the properties, a file for each stream
  jar_place place;
  std::string heap;                 ///< empty: a share of the memory that there is
  std::string logging;              ///< empty: the one that comes with the tool
  bool is_stock = false;            ///< nothing of kclxx runs beside the daemon
  bool is_without_program = false;  ///< check does not look for the program
  std::vector<std::string> java_options;
};

/// The properties of a file, with the overrides of the environment.
/// Errors: command_error or std::system_error for a file that cannot be read.
properties read_properties(const launch_options& options, const std::string& file);

struct reader_answer {
  std::vector<reading> readings;  ///< empty: `why_not` says why nothing was judged
  std::string why_not;
  bool has_stock_writer = true;  ///< see circumstances
};

/// What is wrong with the last of these files, for a daemon that is started here for all of them.
std::vector<diagnostic> find_problems(const launch_options& options,
                                      const std::vector<named_properties>& streams,
                                      reader_answer answer);

/// What the daemon's own reader makes of the file. Blocking: until Java is done.
reader_answer ask_reader(const launch_options& options, const properties& file_properties);

/// Becomes the daemon. Does not return.
/// Errors: command_error.
[[noreturn]] void run_daemon(const launch_options& options);

/// Writes the command that starts the daemon to stdout, for sh, with its files. Errors:
/// command_error.
void print_daemon_command(const launch_options& options);

}  // namespace kclxx::host
