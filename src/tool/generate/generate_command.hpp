// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// `kclxx generate`: makes transcripts with the daemon's side of a dialogue (docs/generate.md).
void add_generate_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
