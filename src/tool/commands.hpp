// SPDX-License-Identifier: Apache-2.0
// Each command adds itself to the tool; its help has what it does, command.hpp what commands are
// made with.
#pragma once

#include "tool/command.hpp"        // IWYU pragma: export
#include "tool/command_error.hpp"  // IWYU pragma: export

namespace kclxx::tool {

void add_capture_command(CLI::App& app, invocation& run);
void add_check_command(CLI::App& app, invocation& run);
void add_daemon_command(CLI::App& app, invocation& run);
void add_feed_command(CLI::App& app, invocation& run);
void add_health_command(CLI::App& app, invocation& run);
void add_leases_command(CLI::App& app, invocation& run);
void add_local_command(CLI::App& app, invocation& run);
void add_new_command(CLI::App& app, invocation& run);
void add_replay_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
