// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/line_source.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kclxx::transcript {

namespace {

// Small enough to be searched while still in the cache, large enough for few system calls.
constexpr std::size_t piece = std::size_t{256} << 10;

}  // namespace

line_source::result line_source::next(std::string_view& line) {
  for (;;) {
    const char* begin = memory_.data() + begin_;
    const auto* newline = scanned_ == end_ ? nullptr
                                           : static_cast<const char*>(std::memchr(
                                                 memory_.data() + scanned_, '\n', end_ - scanned_));
    const std::size_t length =
        newline != nullptr ? static_cast<std::size_t>(newline - begin) : end_ - begin_;
    line = {begin, length};
    if (length > limit_) return result::too_long;
    if (newline != nullptr) {
      begin_ = scanned_ = begin_ + length + 1;
      return result::line;
    }
    scanned_ = end_;
    if (!fill()) {
      line = {memory_.data() + begin_, end_ - begin_};
      const bool is_empty = std::exchange(begin_, end_) == end_;
      return is_empty ? result::end : result::cut_off;
    }
  }
}

// What is left of the buffer moves to its beginning: at most a piece for each line.
bool line_source::fill() {
  if (begin_ > 0) {
    std::memmove(memory_.data(), memory_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
  }
  if (memory_.capacity() - end_ < piece) {
    memory_.grow(std::max(end_ + piece, memory_.capacity() + memory_.capacity() / 2));
  }
  const std::size_t n = source_.read(memory_.data() + end_, piece);
  end_ += n;
  return n > 0;
}

}  // namespace kclxx::transcript
