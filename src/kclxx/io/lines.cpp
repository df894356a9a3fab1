// SPDX-License-Identifier: Apache-2.0
#include "io/lines.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace kclxx::io {

namespace {

constexpr std::size_t first_capacity = std::size_t{64} << 10;
constexpr std::size_t max_read = std::size_t{1} << 30;  // some systems refuse larger reads

}  // namespace

line_reader::line_reader(std::size_t max_line_length) : limit_(max_line_length) {}

read_result line_reader::read_from(int fd, int& error) {
  error = 0;
  make_room();
  for (;;) {
    const ssize_t n =
        ::read(fd, buffer_.data() + end_, std::min(buffer_.capacity() - end_, max_read));
    if (n > 0) {
      end_ += static_cast<std::size_t>(n);
      return read_result::data;
    }
    if (n == 0) return read_result::end;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return read_result::would_block;
    error = errno;
    return read_result::end;
  }
}

bool line_reader::has_room() const noexcept {
  return buffer_.capacity() >= first_capacity + (end_ - begin_);
}

void line_reader::move_to(char* memory) noexcept {
  if (end_ > begin_) std::memmove(memory, buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  scanned_ -= begin_;
  begin_ = 0;
}

void line_reader::make_room() {
  if (begin_ > 0) move_to(buffer_.data());
  if (!has_room()) buffer_.grow(std::max(end_ + first_capacity, 2 * buffer_.capacity()));
}

void line_reader::lend(line_buffer& memory) noexcept {
  if (memory.capacity() <= buffer_.capacity()) return;
  move_to(memory.data());
  std::swap(buffer_, memory);
}

bool line_reader::next_line(line_buffer& line, std::size_t& length) {
  if (scanned_ == end_) return false;
  const char* begin = buffer_.data() + begin_;
  const auto* newline =
      static_cast<const char*>(std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_));
  if (newline == nullptr) {
    scanned_ = end_;
    is_over_limit_ = end_ - begin_ > limit_;
    return false;
  }
  length = static_cast<std::size_t>(newline - begin);
  is_over_limit_ = length > limit_;
  if (is_over_limit_) return false;
  const std::size_t bytes_after_line = end_ - begin_ - length - 1;
  if (begin_ == 0 && bytes_after_line <= length) {
    // In lockstep with a daemon nothing follows the line, and nothing is copied.
    if (bytes_after_line > 0) {
      line.grow(std::max(bytes_after_line, first_capacity));
      std::memcpy(line.data(), newline + 1, bytes_after_line);
    }
    std::swap(line, buffer_);
    end_ = bytes_after_line;
  } else {
    line.grow(std::max(length, first_capacity));
    std::memcpy(line.data(), begin, length);
    begin_ += length + 1;
  }
  scanned_ = begin_;
  if (length > 0 && line.data()[length - 1] == '\r') --length;
  return true;
}

bool line_reader::unfinished(line_buffer& line, std::size_t& length) {
  if (begin_ == end_) return false;
  length = end_ - begin_;
  std::memmove(buffer_.data(), buffer_.data() + begin_, length);
  std::swap(line, buffer_);
  begin_ = end_ = scanned_ = 0;
  return true;
}

void line_reader::release_memory() noexcept {
  if (begin_ != end_) return;
  begin_ = end_ = scanned_ = 0;
  buffer_.release();
}

namespace {

// ThreadSanitizer does not see mremap, and takes the memory's earlier use by another thread for a
// race.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KCLXX_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define KCLXX_THREAD_SANITIZER
#endif

void* map_memory(std::size_t size) noexcept {
  return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

line_buffer::line_buffer(line_buffer&& source) noexcept
    : data_(std::exchange(source.data_, nullptr)), capacity_(std::exchange(source.capacity_, 0)) {}

line_buffer& line_buffer::operator=(line_buffer&& source) noexcept {
  std::swap(data_, source.data_);
  std::swap(capacity_, source.capacity_);
  return *this;
}

line_buffer::~line_buffer() { release(); }

void line_buffer::grow(std::size_t capacity) {
  if (capacity <= capacity_) return;
  const std::size_t size = capacity + padding;
  if (size < capacity) throw std::bad_alloc();
#if defined(MREMAP_MAYMOVE) && !defined(KCLXX_THREAD_SANITIZER)
  void* grown = data_ == nullptr ? map_memory(size)
                                 : ::mremap(data_, capacity_ + padding, size, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) throw std::bad_alloc();
#else
  void* grown = map_memory(size);
  if (grown == MAP_FAILED) throw std::bad_alloc();
  if (capacity_ > 0) std::memcpy(grown, data_, capacity_);
  release();
#endif
  data_ = static_cast<char*>(grown);
  capacity_ = capacity;
}

void line_buffer::release() noexcept {
  if (data_ != nullptr) ::munmap(data_, capacity_ + padding);
  data_ = nullptr;
  capacity_ = 0;
}

std::error_code write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return {errno, std::generic_category()};
    }
  }
  return {};
}

std::error_code write_now(int fd, std::string_view& text) noexcept {
  while (!text.empty()) {
    iovec piece{const_cast<char*>(text.data()), text.size()};
    ssize_t n = ::pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (n == -1 && errno != EINTR && errno != EPIPE && errno != EBADF) {
      // The pipe is full, or this is Linux before 6.5, which cannot write so to a pipe.
      pollfd writable{fd, POLLOUT, 0};
      const int ready = ::poll(&writable, 1, 0);
      if (ready == 0) return {};
      // A pipe that is writable has room for PIPE_BUF bytes. After a signal nothing is known.
      if (ready == 1) n = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    }
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR) {
      return {errno, std::generic_category()};
    }
  }
  return {};
}

line_output::line_output(int fd) noexcept : fd_(fd) { copy_guard::watch(); }

std::error_code line_output::write(std::string_view lines) {
  copies_.leave_if_copied();
  if (!keeps_lines()) {
    if (const std::error_code ec = write_now(fd_, lines)) return ec;
    kept_ = lines;
    return {};
  }
  kept_ += lines;
  return write_kept();
}

std::error_code line_output::write_kept() {
  std::string_view unwritten = kept_;
  const std::error_code ec = write_now(fd_, unwritten);
  kept_.erase(0, ec ? kept_.size() : kept_.size() - unwritten.size());
  return ec;
}

}  // namespace kclxx::io
