// SPDX-License-Identifier: Apache-2.0
// The daemon's lines, byte for byte as its JSON library writes them, without the newline. The test
// of the real classes (tests/conformance) compares them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::daemon_model {

/// Which daemon: the KCL's major version.
enum class generation { v1, v2, v3 };

/// Why the older daemons call shutdown.
enum class shutdown_reason { shard_end, lease_lost };

/// std::nullopt: a daemon that does not report where reading begins writes nulls.
std::string initialize_line(std::string_view shard_id,
                            const std::optional<sequence_position>& position);

/// `data` of the records is written as base64; what the optional fields lack is written as null.
std::string process_records_line(std::span<const record> records,
                                 std::optional<std::int64_t> millis_behind_latest);

/// The same, appended; for callers that reuse their memory.
void append_process_records(std::string& out, std::span<const record> records,
                            std::optional<std::int64_t> millis_behind_latest);

/// shardEnded, or 1.x's shutdown with TERMINATE.
std::string shard_ended_line(generation version);
/// leaseLost, or 1.x's shutdown with ZOMBIE.
std::string lease_lost_line(generation version);
/// 2.0's shutdown, with SHARD_END or LEASE_LOST; later ones of 2.x write as 3.x does.
std::string shutdown_line(shutdown_reason reason);
std::string shutdown_requested_line();

/// The answer to a checkpoint: what was asked for, as the daemon understood it, and the simple
/// name of the exception, if any.
std::string checkpoint_line(const std::optional<std::string>& sequence_number,
                            std::optional<std::int64_t> sub_sequence_number,
                            const std::optional<std::string>& error);

}  // namespace kclxx::daemon_model
