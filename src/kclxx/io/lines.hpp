// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "io/copy_guard.hpp"

namespace kclxx::io {

/// Memory for a line, with room after it for readers that look ahead. It grows without copying, is
/// not filled with zeros, and returns to the system when it is released.
///
/// It begins on a page: otherwise the kernel's copy out of a pipe can take several times as long.
/// Thread safety: none.
class line_buffer {
 public:
  /// Bytes that stay writable after the capacity.
  static constexpr std::size_t padding = 64;

  line_buffer() = default;
  line_buffer(line_buffer&& source) noexcept;
  line_buffer& operator=(line_buffer&& source) noexcept;
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

/// The outcome of a read.
enum class read_result {
  data,         ///< bytes were read: look for lines
  would_block,  ///< no bytes have arrived
  end,          ///< the end of the input, or an error that amounts to it
};

/// Cuts a byte stream into lines. The current line is read straight into its own buffer; in
/// lockstep with a daemon nothing is ever copied.
///
/// Call read_from(fd) once, then next_line() until it returns false, and so on.
/// Thread safety: none.
class line_reader {
 public:
  explicit line_reader(std::size_t max_line_length);

  /// Calls read(2) once into the current buffer, again on EINTR. `error` gets errno when the result
  /// is `end` because of an error, else 0.
  read_result read_from(int fd, int& error);

  /// Whether a whole line has arrived. If so, `line` gets its buffer and `length` its length
  /// without the newline (and without a carriage return before it); the bytes after it are kept for
  /// the next line. `line`'s old memory becomes the reader's next buffer, so there are only ever
  /// two buffers. With lend() only the first of them becomes large.
  bool next_line(line_buffer& line, std::size_t& length);

  /// The part of the next line that has arrived; empty unless it begins the buffer. It may be
  /// rewritten, but not its newlines, and moves with the next call.
  [[nodiscard]] std::span<char> arriving() noexcept {
    if (begin_ != 0 || scanned_ != end_) return {};
    return {buffer_.data(), end_};
  }

  /// Gives the bytes after the last newline: after the end of the input, an unfinished line. False
  /// when there are none.
  bool unfinished(line_buffer& line, std::size_t& length);

  /// True once a line turned out longer than max_line_length. `unfinished` gives its beginning.
  [[nodiscard]] bool over_limit() const noexcept { return is_over_limit_; }

  [[nodiscard]] bool has_unread() const noexcept { return begin_ != end_; }
  /// Whether the next read begins a line, or needs a larger buffer: the time to lend one.
  [[nodiscard]] bool could_use_memory() const noexcept { return begin_ == end_ || !has_room(); }
  /// Reads into this memory from now on, if it is larger, and leaves the reader's own in its place.
  void lend(line_buffer& memory) noexcept;

  /// Gives back the buffer's memory, unless it has bytes that were read.
  void release_memory() noexcept;

 private:
  void make_room();
  [[nodiscard]] bool has_room() const noexcept;
  void move_to(char* memory) noexcept;

  line_buffer buffer_;
  // Offsets in the buffer: the current line begins at begin_, the bytes that were read end at end_,
  // and between begin_ and scanned_ there is no newline.
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t scanned_ = 0;
  std::size_t limit_;
  bool is_over_limit_ = false;
};

/// Writes the whole text to `fd`, through EINTR and short writes. On a non-blocking descriptor it
/// waits with poll(2). The caller deals with SIGPIPE (signals.hpp).
/// Errors: std::errc::broken_pipe when the reader is gone, else errno's.
/// Blocking: until the reader has taken the text.
std::error_code write_all(int fd, std::string_view text) noexcept;

/// Writes the part of `text` that `fd` takes without waiting, and removes it. Errors: as write_all.
/// Blocking: no, where `fd` is a pipe or a socket.
std::error_code write_now(int fd, std::string_view& text) noexcept;

/// Writes lines to a descriptor and never waits for its reader: bytes that it does not take are
/// kept. A forked copy of the process ends when it writes (copy_guard).
/// Thread safety: none.
class line_output {
 public:
  explicit line_output(int fd) noexcept;

  /// Writes the lines after the bytes that are kept. Errors: errno's; then nothing is kept.
  std::error_code write(std::string_view lines);
  /// Tries to write the bytes that are kept. Errors: as write.
  std::error_code write_kept();
  [[nodiscard]] bool keeps_lines() const noexcept { return !kept_.empty(); }
  void drop_kept() noexcept { kept_.clear(); }

 private:
  int fd_;
  copy_guard copies_;
  std::string kept_;
};

}  // namespace kclxx::io
