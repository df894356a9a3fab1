// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "tool/line_splitter.hpp"
#include "tool/transcript/byte_stream.hpp"

namespace kclxx::transcript {

/// The lines of a byte_source.
///
/// Thread safety: none.
class line_source {
 public:
  enum class result { line, end, cut_off, too_long };

  line_source(byte_source& source, std::size_t max_line) : source_(source), limit_(max_line) {}

  /// `line` gets the next line without its newline; valid until the next call that reads. With
  /// `cut_off` it is what follows the last newline, with `too_long` the line's beginning.
  result next(std::string_view& line);

 private:
  byte_source& source_;
  std::size_t limit_;
  tool::line_splitter lines_;
};

}  // namespace kclxx::transcript
