// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// `kclxx check`: holds a child against the rules of the protocol.
void add_check_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
