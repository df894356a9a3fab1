// SPDX-License-Identifier: Apache-2.0
#include "cli/relay.hpp"

#include <cerrno>
#include <climits>
#include <cstddef>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "io/line_writer.hpp"

namespace kclxx::cli {

namespace {

// True when something can be read, or has ended; false when nobody reads `to`. That one is looked
// at too, since a reader who is gone must be known to the writer as soon as without us, not when
// the next bytes come.
bool wait_for_bytes(const descriptor& from, const descriptor& to) {
  for (;;) {
    pollfd both[] = {{from.get(), POLLIN, 0}, {to.get(), 0, 0}};
    if (::poll(both, 2, -1) == -1) continue;  // EINTR
    if ((both[1].revents & (POLLERR | POLLNVAL)) != 0) return false;
    if (both[0].revents != 0) return true;
  }
}

void wait_for_room(const descriptor& to) {
  pollfd room{to.get(), POLLOUT, 0};
  while (::poll(&room, 1, -1) == -1) {  // EINTR
  }
}

// A short line goes into a pipe with room as a whole, or the next poll would not say so.
bool takes_without_waiting(const descriptor& to, std::size_t count) {
  pollfd room{to.get(), POLLOUT, 0};
  return count <= PIPE_BUF && ::poll(&room, 1, 0) == 1 && room.revents == POLLOUT;
}

bool relay_pages_once(const descriptor& from, const descriptor& to, recorder& order,
                      passed_on& passed) {
  // The child may answer at once; its answer waits with its turn for the rest of this.
  auto turn = order.take_turn();
  const ssize_t n = ::tee(from.get(), to.get(), line_recorder::max_read, SPLICE_F_NONBLOCK);
  if (n > 0) return passed.move_from(from.get(), static_cast<std::size_t>(n));
  if (n == 0) {
    passed.end();
    return false;
  }
  const int error = errno;
  turn.unlock();
  if (error == EAGAIN) wait_for_room(to);
  return error == EAGAIN || error == EINTR;
}

bool relay_bytes_once(const descriptor& from, const descriptor& to, recorder& order,
                      line_recorder& lines, passed_on& before) {
  char* const bytes = lines.room();
  const ssize_t n = ::read(from.get(), bytes, line_recorder::max_read);
  if (n == -1) return errno == EINTR || errno == EAGAIN;
  auto turn = order.take_turn();
  if (n == 0) {
    before.drain();
    lines.end();
    return false;
  }
  const auto count = static_cast<std::size_t>(n);
  const std::string_view fresh(bytes, count);
  const buffer_pool::buffer in_use = lines.memory();
  // What these bytes cause must be recorded behind them. Without waiting they can go first, since
  // nothing comes from the daemon's side before the turn is over.
  const bool goes_first = takes_without_waiting(to, count);
  std::error_code error;
  if (goes_first) error = io::write_all(to.get(), fresh);
  before.drain();
  lines.took(count);
  turn.unlock();
  if (!goes_first) error = io::write_all(to.get(), fresh);
  order.wake();
  return !error;
}

}  // namespace

void relay_pages(descriptor from, descriptor to, recorder& order, passed_on& passed) {
  while (wait_for_bytes(from, to) && relay_pages_once(from, to, order, passed)) {
  }
}

void relay_bytes(descriptor from, descriptor to, recorder& order, line_recorder& lines,
                 passed_on& before) {
  while (wait_for_bytes(from, to) && relay_bytes_once(from, to, order, lines, before)) {
  }
}

}  // namespace kclxx::cli
