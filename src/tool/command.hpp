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

/// One run of the tool: what a command gets besides its options, and the status that it leaves.
struct invocation {
  /// The words after "--", unchanged: the child's program and its arguments, or other options.
  std::vector<std::string> child;
  bool has_separator = false;  ///< the command line has a "--"
  /// A command_status, or with capture the child's exit status.
  int status = 0;
};

struct command_text {
  std::string name;
  std::string description;
  std::string example;  ///< whole command lines, with which the help ends
};

enum class child_use {
  none,      ///< "--" is a usage error
  required,  ///< the command starts the program after "--"
  options,   ///< the words after "--", if any, are options of the program that the command starts
};

/// Adds a command. The caller then sets its options and its callback. Lifetime: `run` outlives the
/// parsing.
CLI::App& add_command(CLI::App& app, const command_text& text, child_use child, invocation& run);

/// Demands a child, as child_use::required does: for a command that sets parse_complete_callback
/// itself. Errors: CLI::ValidationError when there is none.
void require_child(const invocation& run);

/// Adds an option whose value the help calls `type`. An empty FILE or DIR, as from a variable that
/// is not set, is an error.
template <class Value>
CLI::Option* add_option(CLI::App& command, const std::string& type, const std::string& name,
                        Value& value, const std::string& description) {
  CLI::Option* option = command.add_option(name, value, description)->type_name(type);
  const auto is_given = [](const std::string& text) { return text.empty() ? "it is empty" : ""; };
  return type == "FILE" || type == "DIR" ? option->check(CLI::Validator(is_given, "")) : option;
}

/// For options with a whole number: decimal digits without a leading zero, in this range.
CLI::Validator whole_number_between(std::uint64_t min, std::uint64_t max);

/// Adds an option with a time, in seconds from 1 ms to `max_seconds`. The value of `result` is the
/// default; when it is 0, the option may be 0, too.
void add_seconds(CLI::App& command, const std::string& name, std::chrono::milliseconds& result,
                 const std::string& description, double max_seconds = 86400);

/// Parses, runs the command and gives the process's exit status; messages go to stderr.
int run_command_line(CLI::App& app, invocation& run, int argc, const char* const* argv);

// Each command adds itself to the tool. Its help tells what it does.

void add_capture_command(CLI::App& app, invocation& run);
void add_check_command(CLI::App& app, invocation& run);
void add_feed_command(CLI::App& app, invocation& run);
void add_new_command(CLI::App& app, invocation& run);
void add_replay_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
