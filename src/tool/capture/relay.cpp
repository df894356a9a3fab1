// SPDX-License-Identifier: Apache-2.0
#include "tool/capture/relay.hpp"

#include <cerrno>
#include <climits>
#include <cstddef>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "io/line_writer.hpp"

namespace kclxx::cli {

namespace {

using transcript::entry_kind;

// As much as a pipe here can hold.
constexpr std::size_t max_read = std::size_t{256} << 10;

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

bool relay_pages_once(const descriptor& from, const descriptor& to, recorder& order) {
  const bool records = order.is_recording();
  const auto pass_on =
      records ? [](int in, int out) { return ::tee(in, out, max_read, SPLICE_F_NONBLOCK); }
              : [](int in, int out) {
                  return ::splice(in, nullptr, out, nullptr, max_read, SPLICE_F_NONBLOCK);
                };
  // The child may answer at once; its answer waits with its turn for the rest of this.
  auto turn = order.take_turn();
  const ssize_t n = pass_on(from.get(), to.get());
  if (n > 0) return !records || order.move_from(from.get(), static_cast<std::size_t>(n));
  const int error = errno;
  if (n == 0) order.add_event(entry_kind::end_of_input);
  turn.unlock();
  if (n == 0) return false;
  if (error == EAGAIN) wait_for_room(to);
  return error == EAGAIN || error == EINTR;
}

bool relay_bytes_once(const descriptor& from, const descriptor& to, recorder& order,
                      entry_kind lines, std::vector<char>& memory) {
  const ssize_t n = ::read(from.get(), memory.data(), memory.size());
  if (n == -1) return errno == EINTR || errno == EAGAIN;
  auto turn = order.take_turn();
  if (n == 0) {
    order.add_event(lines == entry_kind::daemon_line ? entry_kind::end_of_input
                                                     : entry_kind::end_of_output);
    return false;
  }
  const std::string_view fresh(memory.data(), static_cast<std::size_t>(n));
  // What these bytes cause must be recorded behind them. Without waiting they can go first, since
  // nothing comes from the daemon's side before the turn is over.
  const bool goes_first = takes_without_waiting(to, fresh.size());
  std::error_code error;
  if (goes_first) error = io::write_all(to.get(), fresh);
  order.add(lines, fresh);
  turn.unlock();
  if (!goes_first) error = io::write_all(to.get(), fresh);
  return !error;
}

}  // namespace

void relay_pages(descriptor from, descriptor to, recorder& order) {
  while (wait_for_bytes(from, to) && relay_pages_once(from, to, order)) {
  }
}

void relay_bytes(descriptor from, descriptor to, recorder& order, entry_kind lines) {
  std::vector<char> memory(max_read);
  while (wait_for_bytes(from, to) && relay_bytes_once(from, to, order, lines, memory)) {
  }
}

}  // namespace kclxx::cli
