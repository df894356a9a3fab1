// SPDX-License-Identifier: Apache-2.0
// The command and the environment that start a daemon.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/daemon/check.hpp"
#include "host/daemon/jars.hpp"
#include "host/daemon/properties.hpp"

namespace kclxx::host {

struct start_failure {
  std::string what;     ///< with the remedy, in one line
  bool is_end = false;  ///< the worker is about to leave, with status 0

  bool operator==(const start_failure&) const = default;
};

/// What one of the failures that properties/logback.xml hands to the guard means: a line
/// "APPLICATION: MESSAGE", where the application is only there when the daemon has several streams.
/// Nothing: the daemon's own words are enough.
std::optional<start_failure> explain(std::string_view line);

struct launch_settings {
  kcl_version which = kcl_version::kcl3;  ///< for the keys of the properties
  std::string java = "java";              ///< the program
  std::string class_path;
  /// Why only AWS's classes run. Empty: those of src/host/java run the daemon.
  std::string why_stock = "--stock";
  bool has_own_writer = false;  ///< src/host/java/BatchMessageWriter.java may write the batches
  std::vector<std::string> properties_files;  ///< one for each stream
  std::string logging_file;
  std::vector<std::string> java_options;  ///< the user's, which come after ours
  /// The text of all options that the user gives Java: ours give way to these.
  std::string user_options;
};

struct launch {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< in addition
};

/// The daemon's worker id: that of the properties, or else `id_if_none`. It stands in the
/// properties afterwards, under one of the two keys that KCL 2.x and 3.x have for it.
std::string settle_worker_id(properties& file, kcl_version kcl, const std::string& id_if_none);

/// The stream's name; with KCL 2.x and 3.x an ARN comes first. Empty: there is none.
std::string stream_name(const properties& file, kcl_version kcl);

/// `streams`: what each of the files will contain, with its worker id settled. The environment is
/// what the library reads: the names that shard_context shows. With several streams
/// src/host/java/StreamProcessor.java gives each child its own.
launch compose(const launch_settings& settings, const std::vector<named_properties>& streams);

/// The options of Java that are ours, without those that an option in the text `given`, the user's,
/// decides. What they save was measured: docs/host/daemon.md. Java 8 knows all since its update
/// 191.
std::vector<std::string> java_options(const std::string& given);

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

  [[nodiscard]] kcl_version which() const { return kcl.which; }
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
