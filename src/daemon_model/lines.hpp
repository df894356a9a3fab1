// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

#include "protocol/message.hpp"

namespace kclxx::daemon_model {

/// An empty line: children write one before each message; the daemon skips it and logs nothing.
struct blank {
  bool operator==(const blank&) const = default;
};

/// A line that the daemon skips, with a line in its log: to the child it looks like waiting.
struct ignored_line {
  enum class reason {
    not_json,
    not_an_object,
    no_action,
    two_actions,
    unknown_action,
    unknown_field,  ///< a message, but for a field that the daemon does not know
    wrong_type,     ///< a message, but for a field whose value the daemon cannot convert
  };
  reason because = reason::not_json;
  std::string why;  ///< the reason for people, with the names
  bool operator==(const ignored_line&) const = default;
};

struct child_status {
  std::optional<std::string> response_for;
  bool operator==(const child_status&) const = default;
};

struct child_checkpoint {
  std::optional<std::string> sequence_number;
  std::optional<std::int64_t> sub_sequence_number;
  bool operator==(const child_checkpoint&) const = default;
};

/// A well-formed message of a kind that only the daemon sends: it is read and has no effect.
struct unexpected_message {
  std::string action;
  bool operator==(const unexpected_message&) const = default;
};

/// `null`, which the daemon takes for a message and then fails on.
struct null_message {
  bool operator==(const null_message&) const = default;
};

using child_message = std::variant<blank, ignored_line, child_status, child_checkpoint,
                                   unexpected_message, null_message>;

/// What the daemon makes of a line (without its newline) from a child. An unknown field makes the
/// line noise (P20), scalars are converted to the type that is wanted, and text after the object is
/// ignored.
child_message parse_child_message(std::string_view line);

/// For a report.
std::string to_string(const child_message& line);

// The daemon's lines, byte for byte as its JSON library writes them, without the newline.
// tests/host/conformance compares them with those of the real classes.

/// The line of an action that has no fields: an ending, or shutdownRequested.
std::string action_line(protocol::action_kind kind);

/// `position`: where reading begins.
std::string initialize_line(std::string_view shard_id, const sequence_position& position);

/// The data of a record is written as base64, a field without a value as null.
std::string process_records_line(std::span<const record> records,
                                 std::optional<std::int64_t> millis_behind_latest);

/// The answer to a checkpoint: the position that was asked for, as the daemon has understood it,
/// and the simple name of the exception, if the checkpoint has failed.
std::string checkpoint_line(const std::optional<std::string>& sequence_number,
                            std::optional<std::int64_t> sub_sequence_number,
                            const std::optional<std::string>& error);

}  // namespace kclxx::daemon_model
