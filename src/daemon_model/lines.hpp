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
#include <kclxx/testing/daemon_options.hpp>

#include "protocol/message.hpp"

namespace kclxx::daemon_model {

using kcl = testing::daemon_options::kcl;

/// The name in this daemon's line, which the status must repeat.
std::string_view action_name(protocol::action_kind kind, kcl version);

/// The line of an action that has no fields but a reason: an ending, or shutdownRequested.
std::string action_line(protocol::action_kind kind, kcl version = kcl::v2_1);

/// std::nullopt: a daemon that does not report where reading begins writes nulls.
std::string initialize_line(std::string_view shard_id,
                            const std::optional<sequence_position>& position);

/// `data` of the records is written as base64; what the optional fields lack is written as null.
std::string process_records_line(std::span<const record> records,
                                 std::optional<std::int64_t> millis_behind_latest);

/// The same, appended; for callers that reuse their memory.
void append_process_records(std::string& out, std::span<const record> records,
                            std::optional<std::int64_t> millis_behind_latest);

/// The answer to a checkpoint: what was asked for, as the daemon understood it, and the simple
/// name of the exception, if any.
std::string checkpoint_line(const std::optional<std::string>& sequence_number,
                            std::optional<std::int64_t> sub_sequence_number,
                            const std::optional<std::string>& error);

}  // namespace kclxx::daemon_model
