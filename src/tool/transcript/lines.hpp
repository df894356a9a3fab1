// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tool/transcript/entry.hpp"

namespace kclxx::transcript {

/// The version of the format, the value of "kclxx_transcript".
inline constexpr int format_version = 1;

/// The header's line, without a newline. What is not UTF-8 in the command becomes U+FFFD.
std::string to_line(const header& header);

/// What the first line of a file is.
struct daemon_lines_only {};  ///< a line of the daemon: a file without a header
struct not_a_transcript {
  std::string why;
};
using first_line = std::variant<header, daemon_lines_only, not_a_transcript>;
first_line parse_first_line(std::string_view line);

/// "2026-11-21T07:00:00.123456Z"
std::string format_time(std::chrono::system_clock::time_point date);

/// The shard that a line of the daemon initializes; std::nullopt for any other line.
std::optional<std::string> initialized_shard(std::string_view line);

/// Reads one line after the header into `out`, whose `line` is a view of `line`, or of `text`
/// where it was escaped. Null, or what is wrong.
const char* parse_entry(std::string_view line, entry& out, std::string& text);

/// The line without blanks before and after it, as a carriage return.
[[nodiscard]] std::string_view without_blanks(std::string_view line) noexcept;

/// Whether a line is unchanged in a transcript: it begins with { and ends with }.
[[nodiscard]] bool is_object(std::string_view line) noexcept;

}  // namespace kclxx::transcript
