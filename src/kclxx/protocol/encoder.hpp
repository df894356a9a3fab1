// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

namespace kclxx::protocol {

// Each line has just the fields that the daemon knows (it drops a line with any other, P20), ends
// with a newline and begins with one, so that text left on the pipe cannot be glued to it (P3).

/// Appends a status line for the action of that name.
void append_status(std::string& out, std::string_view action);

/// Appends a checkpoint line; std::nullopt is the null checkpoint: the shard's end, or everything.
void append_checkpoint(std::string& out, const std::optional<sequence_position>& position);

}  // namespace kclxx::protocol
