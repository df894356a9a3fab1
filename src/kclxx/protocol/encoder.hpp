// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

namespace kclxx::protocol {

// A line has only the fields that the daemon knows: the daemon drops a line with a further field
// (P20). It begins and ends with a newline, so that no text on the pipe is joined to it (P3).

/// Appends a status line for the action of that name.
void append_status(std::string& out, std::string_view action);

/// Appends a checkpoint line. std::nullopt is the null checkpoint, which covers everything; at the
/// shard's end it finishes the shard.
void append_checkpoint(std::string& out, const std::optional<sequence_position>& position);

}  // namespace kclxx::protocol
