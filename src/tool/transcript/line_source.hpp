// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "io/line_buffer.hpp"
#include "tool/transcript/byte_stream.hpp"

namespace kclxx::transcript {

/// Cuts a byte_source into lines, as views into one buffer that is used again and again.
///
/// Thread safety: none.
class line_source {
 public:
  /// Bytes after a line that can be read.
  static constexpr std::size_t padding = io::line_buffer::padding;

  enum class result { line, end, cut_off, too_long };

  line_source(byte_source& source, std::size_t max_line) : source_(source), limit_(max_line) {}

  /// `line` gets the next line without its newline; valid until the next call. With `cut_off` it
  /// is what comes after the last newline, with `too_long` the line's beginning.
  result next(std::string_view& line);

 private:
  bool fill();

  byte_source& source_;
  std::size_t limit_;
  io::line_buffer memory_;
  std::size_t begin_ = 0;    // of the current line
  std::size_t scanned_ = 0;  // no newline between begin_ and here
  std::size_t end_ = 0;      // of what was read
};

}  // namespace kclxx::transcript
