// SPDX-License-Identifier: Apache-2.0
#include "cli/relay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
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
  return both_are_pipes_ ? copy_by_tee() : copy_by_write();
}

// The other side gets the same pages, without a copy, and before anything else is done. It may
// answer at once; its answer has to wait with its turn until the bytes are in the recorder.
bool relay::copy_by_tee() {
  auto turn = recorder_.take_turn();
  const ssize_t passed_on = ::tee(from_.get(), to_.get(), max_read, SPLICE_F_NONBLOCK);
  if (passed_on == 0) return end();
  if (passed_on == -1) {
    turn.unlock();
    const int error = errno;
    if (error == EINVAL) both_are_pipes_ = false;
    if (error == EAGAIN) wait_for_room();
    return error == EAGAIN || error == EINVAL || error == EINTR;
  }
  for (auto left = static_cast<std::size_t>(passed_on); left > 0;) {
    const ssize_t n = ::read(from_.get(), buffer_->data() + size_, left);
    if (n == -1 && errno == EINTR) continue;
    if (n <= 0) return false;
    record(static_cast<std::size_t>(n));
    left -= static_cast<std::size_t>(n);
  }
  recorder_.wake();
  return true;
}

bool relay::copy_by_write() {
  char* const fresh = buffer_->data() + size_;
  const ssize_t n = ::read(from_.get(), fresh, max_read);
  if (n == -1) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return end();
  const auto count = static_cast<std::size_t>(n);
  const buffer_pool::buffer in_use = buffer_;
  {
    // Before it goes on, so that nothing that it causes can be recorded earlier.
    const auto turn = recorder_.take_turn();
    record(count);
  }
  const auto error = io::write_all(to_.get(), {fresh, count});
  recorder_.wake();
  return !error;
}

void relay::wait_for_room() const {
  pollfd room{to_.get(), POLLOUT, 0};
  while (::poll(&room, 1, -1) == -1) {  // EINTR
  }
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

bool relay::end() {
  if (size_ > 0) recorder_.add({lines_, buffer_, {buffer_->data(), size_}, true});
  recorder_.add({end_});
  recorder_.wake();
  return false;
}

}  // namespace kclxx::cli
