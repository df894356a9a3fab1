// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kclxx::tool {

/// As exec(3) and posix_spawn(3) take arguments and environments, with a null pointer at the end.
/// Lifetime: that of the texts, which stay as they are.
[[nodiscard]] std::vector<char*> pointers_to(std::vector<std::string>& texts);

/// This process becomes that program, which is named by its path.
/// Errors: command_error; there is no other return.
[[noreturn]] void exec(std::vector<std::string> command);

}  // namespace kclxx::tool
