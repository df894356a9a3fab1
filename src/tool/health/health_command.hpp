// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// kclxx health: whether the shards of a worker get on, for a probe.
void add_health_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
