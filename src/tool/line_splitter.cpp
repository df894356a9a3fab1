// SPDX-License-Identifier: Apache-2.0
#include "tool/line_splitter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kclxx::tool {

namespace {

constexpr std::size_t page = 4096;

constexpr std::size_t whole_pages(std::size_t size) { return (size + page - 1) / page * page; }

}  // namespace

char* line_splitter::prepare(std::size_t size) {
  if (begin_ == end_) begin_ = scanned_ = end_ = 0;
  // The incomplete line moves towards the beginning, so that the new bytes begin at a page: the
  // kernel copies much faster to there.
  const std::size_t size_of_rest = end_ - begin_;
  const std::size_t begin = whole_pages(size_of_rest) - size_of_rest;
  if (begin < begin_) {
    std::memmove(memory_.data() + begin, memory_.data() + begin_, size_of_rest);
    scanned_ -= begin_ - begin;
    begin_ = begin;
    end_ = begin + size_of_rest;
  }
  const std::size_t capacity = memory_.capacity();
  if (capacity < end_ + size) memory_.grow(std::max(end_ + size, capacity + capacity / 2));
  return memory_.data() + end_;
}

bool line_splitter::next(std::string_view& line) noexcept {
  if (scanned_ == end_) return false;
  if (std::exchange(is_after_return_, false) && memory_.data()[begin_] == '\n') {
    begin_ = ++scanned_;
  }
  const auto find = [this](char character, std::size_t end) {
    const char* const begin = memory_.data() + scanned_;
    const void* const found = std::memchr(begin, character, end - scanned_);
    if (found == nullptr) return end;
    return static_cast<std::size_t>(static_cast<const char*>(found) - memory_.data());
  };
  const std::size_t newline = find('\n', end_);
  const std::size_t end = return_ends_line_ ? find('\r', newline) : newline;
  scanned_ = end;
  if (end == end_) return false;
  is_after_return_ = end < newline;
  line = {memory_.data() + begin_, end - begin_};
  begin_ = ++scanned_;
  return true;
}

std::string_view line_splitter::take_rest() noexcept {
  const std::string_view taken = rest();
  begin_ = scanned_ = end_;
  return taken;
}

void line_splitter::cut_rest(std::size_t size) noexcept {
  end_ = std::min(end_, begin_ + size);
  scanned_ = std::min(scanned_, end_);
}

}  // namespace kclxx::tool
