// SPDX-License-Identifier: Apache-2.0
#include "cli/relay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "io/line_writer.hpp"

namespace kclxx::cli {

namespace {

constexpr std::size_t max_read = std::size_t{256} << 10;
constexpr std::size_t max_line = std::size_t{1} << 30;
// Below this a copy is cheaper than another buffer.
constexpr std::size_t worth_handing_over = std::size_t{64} << 10;

}  // namespace

relay::relay(descriptor from, descriptor to, transcript::entry_kind lines,
             transcript::entry_kind end, recorder& to_record, buffer_pool& pool)
    : from_(std::move(from)),
      to_(std::move(to)),
      lines_(lines),
      end_(end),
      recorder_(to_record),
      pool_(pool),
      buffer_(pool.take()) {}

void relay::run() {
  while (wait() == readiness::readable && copy_once()) {
  }
  from_.close();
  to_.close();
}

// Looks at the side that is written, too: a reader who is gone must be known to the writer as soon
// as without us, not when the next bytes come.
relay::readiness relay::wait() const {
  for (;;) {
    pollfd both[] = {{from_.get(), POLLIN, 0}, {to_.get(), 0, 0}};
    if (::poll(both, 2, -1) == -1) continue;  // EINTR
    if ((both[1].revents & (POLLERR | POLLNVAL)) != 0) return readiness::peer_is_gone;
    if (both[0].revents != 0) return readiness::readable;
  }
}

bool relay::copy_once() {
  if (buffer_->capacity() < size_ + max_read) {
    buffer_->grow(std::max(size_ + max_read, 2 * buffer_->capacity()));
  }
  char* const fresh = buffer_->data() + size_;
  const ssize_t n = ::read(from_.get(), fresh, max_read);
  if (n == -1 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n <= 0) {
    record_end();
    return false;
  }
  const auto count = static_cast<std::size_t>(n);
  const buffer_pool::buffer in_use = buffer_;
  // Before it goes on, so that nothing that it causes can be recorded earlier.
  record(count);
  const auto error = io::write_all(to_.get(), {fresh, count});
  recorder_.wake();
  return !error;
}

void relay::record(std::size_t fresh) {
  const char* const begin = buffer_->data();
  const std::size_t end = size_ + fresh;
  const auto* last = static_cast<const char*>(::memrchr(begin + size_, '\n', fresh));
  size_ = end;
  if (!recorder_.is_recording()) {
    size_ = 0;
    return;
  }
  if (last == nullptr) {
    if (end > max_line) recorder_.give_up("a line is longer than 1 GiB");
    return;
  }
  const std::string_view complete(begin, static_cast<std::size_t>(last + 1 - begin));
  const std::string_view rest(last + 1, end - complete.size());
  if (complete.size() < worth_handing_over) {
    const auto copy = std::make_shared<const std::string>(complete);
    recorder_.add({lines_, copy, *copy});
  } else {
    recorder_.add({lines_, buffer_, complete});
  }
  // The old buffer is still being passed on, and perhaps recorded.
  buffer_pool::buffer next = pool_.take();
  next->grow(rest.size() + max_read);
  std::memcpy(next->data(), rest.data(), rest.size());
  buffer_ = std::move(next);
  size_ = rest.size();
}

void relay::record_end() {
  if (size_ > 0) recorder_.add({lines_, buffer_, {buffer_->data(), size_}, true});
  recorder_.add({end_});
  recorder_.wake();
}

}  // namespace kclxx::cli
