// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// `kclxx local`: a local Kinesis and DynamoDB for development.
void add_local_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
