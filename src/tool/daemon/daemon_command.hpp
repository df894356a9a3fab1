// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// `kclxx daemon`: fetches, checks and starts the Java daemon (docs/daemon.md).
void add_daemon_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
