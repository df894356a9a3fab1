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
  /// What ends a line. The daemon reads a child by carriage_return_too: a newline, a carriage
  /// return, or both in this order.
  enum class line_end { newline, carriage_return_too };
  explicit line_splitter(line_end end = line_end::newline) noexcept
      : return_ends_line_(end == line_end::carriage_return_too) {}

  /// Room for `size` more bytes. Lifetime: the lines that next() has given end here.
  /// Errors: std::bad_alloc.
  [[nodiscard]] char* prepare(std::size_t size);
  /// The caller has put `size` bytes into that room.
  void commit(std::size_t size) noexcept { end_ += size; }

  /// The next line, without its newline. False: there is none that is complete.
  bool next(std::string_view& line) noexcept;
  /// The bytes that next() has not given: after the last line, an incomplete line.
  [[nodiscard]] std::string_view rest() const noexcept {
    return {memory_.data() + begin_, end_ - begin_};
  }
  /// Takes those bytes out. Lifetime: until the next call of prepare().
  std::string_view take_rest() noexcept;
  /// Forgets the bytes of an incomplete line beyond `size`.
  void cut_rest(std::size_t size) noexcept;

 private:
  io::line_buffer memory_;
  bool return_ends_line_;
  /// A carriage return has ended the last line, so a newline at begin_ belongs to it.
  bool is_after_return_ = false;
  std::size_t begin_ = 0;    ///< where the current line begins in memory_
  std::size_t scanned_ = 0;  ///< no line ends between begin_ and here
  std::size_t end_ = 0;      ///< where the bytes end
};

}  // namespace kclxx::tool
