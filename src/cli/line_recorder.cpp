// SPDX-License-Identifier: Apache-2.0
#include "cli/line_recorder.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kclxx::cli {

namespace {

constexpr std::size_t max_line = std::size_t{1} << 30;
// Below this a copy is cheaper than another buffer.
constexpr std::size_t worth_handing_over = std::size_t{64} << 10;

}  // namespace

char* line_recorder::room() {
  if (buffer_->capacity() < size_ + max_read) {
    buffer_->grow(std::max(size_ + max_read, 2 * buffer_->capacity()));
  }
  return buffer_->data() + size_;
}

void line_recorder::took(std::size_t count) {
  if (!recorder_.is_recording()) {
    size_ = 0;
    return;
  }
  const char* const begin = buffer_->data();
  const auto* last = static_cast<const char*>(::memrchr(begin + size_, '\n', count));
  size_ += count;
  if (last == nullptr) {
    if (size_ > max_line) recorder_.give_up("a line is longer than 1 GiB");
    return;
  }
  const std::string_view complete(begin, static_cast<std::size_t>(last + 1 - begin));
  const std::string_view rest(last + 1, size_ - complete.size());
  if (complete.size() < worth_handing_over) {
    const auto copy = std::make_shared<const std::string>(complete);
    recorder_.add({lines_, copy, *copy});
  } else {
    recorder_.add({lines_, buffer_, complete});
  }
  // The old buffer is still being recorded, and perhaps passed on.
  buffer_pool::buffer next = pool_.take();
  next->grow(rest.size() + max_read);
  std::memcpy(next->data(), rest.data(), rest.size());
  buffer_ = std::move(next);
  size_ = rest.size();
}

void line_recorder::end() {
  if (size_ > 0) recorder_.add({lines_, buffer_, {buffer_->data(), size_}, true});
  size_ = 0;
  recorder_.add({end_});
  recorder_.wake();
}

}  // namespace kclxx::cli
