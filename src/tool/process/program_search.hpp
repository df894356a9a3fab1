// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace kclxx::tool {

enum class executable_state { ok, missing, not_executable, directory };

/// The path that execvp would start for a name; a name with a slash is its own. Nothing: there is
/// no executable file of that name.
std::optional<std::string> find_program(const std::string& name);

/// The program at the path, or of that name in PATH.
executable_state look_at_program(const std::string& name);

/// Java: $JAVA_HOME/bin/java, or the one in PATH.
/// Errors: command_error with how to get one.
std::string find_java();

}  // namespace kclxx::tool
