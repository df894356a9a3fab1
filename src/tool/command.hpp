// SPDX-License-Identifier: Apache-2.0
// What all commands of the tool have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tool/command_error.hpp"  // IWYU pragma: export

namespace kclxx::tool {

/// One run of the tool: what a command finds besides its options, and the status it leaves.
struct invocation {
  /// What follows "--", untouched: the child's program and its arguments, or other options.
  std::vector<std::string> child;
  bool has_separator = false;  ///< there was a "--"
  /// An command_status, or with capture the child's.
  int status = 0;
};

struct command_text {
  std::string name;
  std::string description;
  std::string example;  ///< whole command lines; the help ends with them
};

enum class child_use {
  none,      ///< "--" is a usage error
  required,  ///< the command starts the program after "--"
  options,   ///< what follows "--" are options of the program that the command starts; there may be
             ///< none
};

/// Adds a command, for its options and callback to be set. `run` outlives the parsing.
CLI::App& add_command(CLI::App& app, const command_text& text, child_use child, invocation& run);

/// What child_use::required does, for a command with a callback of its own when it is parsed.
/// Errors: CLI::ValidationError.
void require_child(const invocation& run);

/// Adds an option whose value the help calls `type`.
template <class Value>
CLI::Option* add_option(CLI::App& command, const char* type, const std::string& name, Value& value,
                        const std::string& description) {
  return command.add_option(name, value, description)->type_name(type);
}

/// For options with a whole number: decimal digits without a leading zero, in this range.
CLI::Validator whole_number_between(std::uint64_t least, std::uint64_t most);

/// Adds an option with a time in seconds, from 1 ms to `most`. What `result` is then is the
/// default.
void add_seconds(CLI::App& command, const std::string& name, std::chrono::milliseconds& result,
                 const std::string& description, double most = 86400);

/// Parses, runs the command and gives the process's exit status; messages go to stderr.
int run_command_line(CLI::App& app, invocation& run, int argc, const char* const* argv);

// Each command adds itself to the tool; its help has what it does.

void add_capture_command(CLI::App& app, invocation& run);
void add_check_command(CLI::App& app, invocation& run);
void add_feed_command(CLI::App& app, invocation& run);
void add_new_command(CLI::App& app, invocation& run);
void add_replay_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
