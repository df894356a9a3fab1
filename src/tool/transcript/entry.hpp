// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::transcript {

/// The first line of a transcript.
struct header {
  std::optional<std::string> shard;  ///< unknown when the dialogue did not begin with initialize
  std::string started;               ///< UTC, "2026-11-21T07:00:00.123456Z"
  std::vector<std::string> command;  ///< begins with the child's program

  bool operator==(const header&) const = default;
};

enum class entry_kind {
  daemon_line,
  child_line,
  exit,           ///< the child left with a status
  killed,         ///< a signal ended the child
  end_of_input,   ///< the daemon closed the child's input
  end_of_output,  ///< the child closed its output
};

/// One line of a transcript.
/// Lifetime: `line` ends with the next call of the reader.
struct entry {
  /// Since header::started; std::nullopt in a file that has only the daemon's lines.
  std::optional<std::chrono::microseconds> at{};
  entry_kind kind = entry_kind::daemon_line;
  std::string_view line{};  ///< unchanged, without its newline; empty for events
  int number = 0;           ///< the exit status, or the signal's number
  /// Of a line that was too long to be recorded: `line` is its beginning. Otherwise 0.
  std::size_t whole_length = 0;
  std::size_t line_number = 0;
};

}  // namespace kclxx::transcript
