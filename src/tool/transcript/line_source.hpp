// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "tool/transcript/byte_stream.hpp"

namespace kclxx::transcript {

/// Cuts a byte_source into lines, as views into one buffer that is used again and again.
///
/// Thread safety: none.
class line_source {
 public:
  /// Bytes after a line that can be read.
  static constexpr std::size_t padding = 64;

  enum class result { line, end, cut_off, too_long };

  line_source(byte_source& source, std::size_t max_line) : source_(source), limit_(max_line) {}

  /// `line` gets the next line without its newline; valid until the next call. With `cut_off` it
  /// is what comes after the last newline, with `too_long` the line's beginning.
  result next(std::string_view& line);

 private:
  bool fill();
  void grow(std::size_t capacity);

  struct free_memory {
    void operator()(char* memory) const noexcept { std::free(memory); }
  };

  byte_source& source_;
  std::size_t limit_;
  std::unique_ptr<char, free_memory> memory_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;    // of the current line
  std::size_t scanned_ = 0;  // no newline between begin_ and here
  std::size_t end_ = 0;      // of what was read
};

}  // namespace kclxx::transcript
