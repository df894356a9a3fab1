// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tool/daemon/diagnostics.hpp"

namespace kclxx::cli {

/// The path that execvp would start for a name; a name with a slash is its own. Nothing: there is
/// no executable file of that name.
std::optional<std::string> find_program(const std::string& name);

/// What stands under the path, or under the name in PATH.
tool::executable_state look_at_program(const std::string& name);

/// Java: $JAVA_HOME/bin/java, or the one in PATH.
/// Errors: command_error that says how to get one.
std::string find_java();

}  // namespace kclxx::cli
