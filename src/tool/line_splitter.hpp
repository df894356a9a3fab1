// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "io/lines.hpp"

namespace kclxx::tool {

/// Cuts bytes into lines, as views into one buffer that is used again and again.
///
/// 1. prepare() and commit() for each read. 2. next() until there is no more line. 3. Again.
/// Thread safety: none.
class line_splitter {
 public:
  /// As Java's readers, which the daemon reads a child with: a carriage return ends a line, too,
  /// and one with a newline after it is one end.
  enum class line_end { newline, as_in_java };
  explicit line_splitter(line_end end = line_end::newline) noexcept
      : has_returns_(end == line_end::as_in_java) {}

  /// Room for so many bytes after those that are there. Lines that were given end here.
  /// Errors: std::bad_alloc.
  [[nodiscard]] char* prepare(std::size_t size);
  /// So many bytes were put there.
  void commit(std::size_t size) noexcept { end_ += size; }

  /// The next line, without its newline. False: there is none that is complete.
  bool next(std::string_view& line) noexcept;
  /// What next() has not given: after the last line, one that is incomplete.
  [[nodiscard]] std::string_view rest() const noexcept {
    return {memory_.data() + begin_, end_ - begin_};
  }
  /// The same, which is gone then.
  std::string_view take_rest() noexcept;
  /// Forgets the end of the rest, which has no newline, beyond this size; how much that is.
  std::size_t cut_rest(std::size_t size) noexcept;

 private:
  io::line_buffer memory_;
  bool has_returns_;
  bool is_after_return_ = false;  // the line before; a newline there ends no other
  std::size_t begin_ = 0;         // of the current line
  std::size_t scanned_ = 0;       // no end of a line between begin_ and here
  std::size_t end_ = 0;           // of what is there
};

}  // namespace kclxx::tool
