// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tool/transcript/byte_stream.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::transcript {

/// Writes a transcript (docs/transcripts.md). Each call is one write of one line to the sink: when
/// the writing process is killed, at most the last line is cut off.
///
/// Thread safety: none.
class writer {
 public:
  /// Lifetime: `sink` outlives the writer.
  explicit writer(byte_sink& sink) : sink_(sink) {}

  void write(const header& head);
  /// `one.at` is set. A line that is an object is written unchanged and without a copy, unless it
  /// is not whole; `is_unfinished`: it ended without a newline.
  void write(const entry& one, bool is_unfinished = false);

 private:
  void begin_text(const entry& one);

  byte_sink& sink_;
  std::string text_;  // kept for its memory
};

}  // namespace kclxx::transcript
