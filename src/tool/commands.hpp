// SPDX-License-Identifier: Apache-2.0
// Each command adds itself to the tool; command.hpp has what they are made with.
#pragma once

#include "tool/command.hpp"        // IWYU pragma: export
#include "tool/command_error.hpp"  // IWYU pragma: export

namespace kclxx::tool {

/// `kclxx capture`: runs between the daemon and a child and records (docs/capture.md).
void add_capture_command(CLI::App& app, invocation& run);
/// `kclxx check`: holds a child against the rules of the protocol.
void add_check_command(CLI::App& app, invocation& run);
/// `kclxx daemon`: fetches, checks and starts the Java daemon (docs/daemon.md).
void add_daemon_command(CLI::App& app, invocation& run);
/// `kclxx generate`: makes transcripts with the daemon's side of a dialogue (docs/generate.md).
void add_generate_command(CLI::App& app, invocation& run);
/// kclxx health: whether the shards of a worker get on, for a probe.
void add_health_command(CLI::App& app, invocation& run);
/// kclxx leases: who has which shard of an application, and what is stuck.
void add_leases_command(CLI::App& app, invocation& run);
/// `kclxx local`: a local Kinesis and DynamoDB for development.
void add_local_command(CLI::App& app, invocation& run);
void add_new_command(CLI::App& app, invocation& run);
/// `kclxx replay`: plays the daemon's side of transcripts against a child (docs/replay.md).
void add_replay_command(CLI::App& app, invocation& run);

}  // namespace kclxx::tool
