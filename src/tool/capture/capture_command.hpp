// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// `kclxx capture`: runs between the daemon and a child and records (docs/capture.md).
void add_capture_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
