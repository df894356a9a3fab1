// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "transcript/byte_stream.hpp"
#include "transcript/entry.hpp"

namespace kclxx::transcript {

/// Writes a transcript (docs/transcripts.md). Each call is one write to the sink, of one complete
/// line: whenever the writing process is killed, at most the last line is cut off.
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

 private:
  byte_sink& sink_;
  std::string text_;  // kept for its memory
};

}  // namespace kclxx::transcript
