// SPDX-License-Identifier: Apache-2.0
// The commands of `kclxx` for whoever runs AWS's daemon.
#pragma once

#include "tool/command.hpp"

namespace kclxx::host {

void add_daemon_command(CLI::App& app, tool::invocation& run);
void add_health_command(CLI::App& app, tool::invocation& run);
void add_leases_command(CLI::App& app, tool::invocation& run);
void add_local_command(CLI::App& app, tool::invocation& run);

}  // namespace kclxx::host
