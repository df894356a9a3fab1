// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// kclxx leases: who has which shard of an application, and what is stuck.
void add_leases_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
