// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "io/copy_guard.hpp"

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

/// What came of one read.
enum class read_result {
  data,         ///< something was read: look for lines
  would_block,  ///< nothing there yet
  end,          ///< end of input, or an error that amounts to it
};

/// Cuts a byte stream into lines. The current line is read straight into its own buffer; in
/// lockstep with a daemon nothing is ever copied.
///
/// 1. read_from(fd) once; 2. next_line() until there is no more; 3. again.
/// Thread safety: none.
class line_reader {
 public:
  explicit line_reader(std::size_t max_line_length);

  /// One read(2) into the current buffer; retried on EINTR. `error` gets errno when the result is
  /// `end` because of an error, else 0.
  read_result read_from(int fd, int& error);

  /// Whether a whole line is there. If so, `line` gets its buffer and `length` its length without
  /// the newline (and without a carriage return before it); what follows it is kept for the
  /// next. `line`'s old memory becomes the reader's next buffer, so that there are only ever two
  /// buffers; lend() makes it one large and one small.
  bool next_line(line_buffer& line, std::size_t& length);

  /// The line that is arriving, as far as it is there and when it is in a buffer of its own,
  /// else empty. It may be rewritten, but for newlines, and moves with the next call.
  [[nodiscard]] std::span<char> arriving() noexcept {
    if (begin_ != 0 || scanned_ != end_) return {};
    return {buffer_.data(), end_};
  }

  /// What was read after the last newline: after the end of input, an unfinished line.
  bool unfinished(line_buffer& line, std::size_t& length);

  /// True once a line turned out longer than max_line_length. The line's beginning
  /// is what `unfinished` gives.
  [[nodiscard]] bool over_limit() const noexcept { return is_over_limit_; }

  [[nodiscard]] bool has_unread() const noexcept { return begin_ != end_; }
  /// Whether the next read begins a line, or needs a larger buffer: the time to lend one.
  [[nodiscard]] bool could_use_memory() const noexcept { return begin_ == end_ || !has_room(); }
  /// Reads into this memory from now on, if it is larger; the reader's own is left in its place.
  void lend(line_buffer& memory) noexcept;

  /// Gives back the buffer's memory, when nothing that was read is in it.
  void release_memory() noexcept;

 private:
  void make_room();
  [[nodiscard]] bool has_room() const noexcept;
  void move_to(char* memory) noexcept;

  line_buffer buffer_;
  std::size_t begin_ = 0;    // of the current line
  std::size_t end_ = 0;      // of what was read
  std::size_t scanned_ = 0;  // from begin_ to here there is no newline
  std::size_t limit_;
  bool is_over_limit_ = false;
};

/// Writes all of `text` to `fd`, through EINTR and short writes; where the descriptor happens to
/// be non-blocking it waits with poll(2). SIGPIPE is the caller's matter (signals.hpp).
/// Errors: std::errc::broken_pipe when the reader is gone, else errno's.
/// Blocking: until the reader took it.
std::error_code write_all(int fd, std::string_view text) noexcept;

/// Writes what `fd` takes without waiting, and removes it from `text`. Errors: as write_all.
/// Blocking: no, where `fd` is a pipe or a socket.
std::error_code write_now(int fd, std::string_view& text) noexcept;

/// Writes lines to a descriptor and never waits for its reader: what is not taken is kept. A forked
/// copy of the process ends when it writes (copy_guard). Thread safety: none.
class line_output {
 public:
  explicit line_output(int fd) noexcept;

  /// After what is kept. Errors: errno's; then nothing is kept.
  std::error_code write(std::string_view lines);
  /// Tries to write what is kept. Errors: as write.
  std::error_code write_kept();
  [[nodiscard]] bool keeps_lines() const noexcept { return !kept_.empty(); }
  void drop_kept() noexcept { kept_.clear(); }

 private:
  int fd_;
  copy_guard copies_;
  std::string kept_;
};

}  // namespace kclxx::io
