// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kclxx::io {

/// Memory for one line, with room after it for readers that look ahead. Grows without copying, is
/// not filled with zeros, and returns to the system when it is released.
///
/// It begins on a page: elsewhere the kernel's copy out of a pipe can take several times as long.
/// Thread safety: none.
class line_buffer {
 public:
  /// Bytes that stay writable after the capacity.
  static constexpr std::size_t padding = 64;

  line_buffer() = default;
  line_buffer(line_buffer&& other) noexcept;
  line_buffer& operator=(line_buffer&& other) noexcept;
  ~line_buffer();

  [[nodiscard]] char* data() noexcept { return data_; }
  [[nodiscard]] const char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// Errors: std::bad_alloc. Keeps the contents.
  void grow(std::size_t capacity);
  void release() noexcept;

 private:
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace kclxx::io
