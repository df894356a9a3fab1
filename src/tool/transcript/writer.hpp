// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tool/transcript/byte_stream.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::transcript {

/// Writes a transcript (docs/transcripts.md). Each call is one write to the sink, and all but the
/// last three one complete line: whenever the writing process is killed, at most the last line is
/// cut off.
///
/// Thread safety: none.
class writer {
 public:
  /// Lifetime: `sink` outlives the writer.
  explicit writer(byte_sink& sink) : sink_(sink) {}

  void write(const header& head);
  /// `one.at` is set. A line goes out as it stands, without a copy, when it is an object;
  /// `is_unfinished`: it ended without a newline, so it never does.
  void write(const entry& one, bool is_unfinished = false);

  /// A long line while it comes: its beginning, `one.line`, which begins with {; more of it; and
  /// its end. The whole ends with }. Returns how many bytes stand in front of the line.
  std::size_t write_beginning(const entry& one);
  void write_more(std::string_view bytes);
  void write_end(std::string_view bytes);

 private:
  void begin_text(const entry& one);

  byte_sink& sink_;
  std::string text_;  // kept for its memory
};

}  // namespace kclxx::transcript
