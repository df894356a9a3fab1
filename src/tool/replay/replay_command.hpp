// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.hpp"

namespace kclxx::tool {

/// `kclxx replay`: plays the daemon's side of transcripts against a child (docs/replay.md).
void add_replay_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
