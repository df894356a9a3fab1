// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace kclxx::tool {

/// "NAME=value" of each variable of this process.
std::vector<std::string> environment();

/// Gets what a program writes, in pieces, and its process id.
using output_handler = std::function<void(std::string_view piece, pid_t program)>;

/// Runs a program that makes something, and gives its exit status, or 128 and the signal's number.
/// SIGINT, SIGTERM and SIGHUP to this process end the program first. What it prints goes to
/// `on_output`, or without one to stderr.
/// Blocking: until the program has ended, and nobody holds its output any more.
/// Errors: start_error, command_error.
int run_program(const std::vector<std::string>& command, std::vector<std::string> variables,
                const output_handler& on_output = {});

}  // namespace kclxx::tool
