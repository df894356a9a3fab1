// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

void add_new_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
