// SPDX-License-Identifier: Apache-2.0
#include "io/input_poll.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <system_error>
#include <unistd.h>

namespace kclxx::io {

input_poll::input_poll(int input) : input_(input) {
  // poll(2) would wait on it until the end of time.
  if (input < 0) throw std::system_error(EBADF, std::generic_category(), "the input");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1) {
    throw std::system_error(errno, std::generic_category(), "no pipe between the threads");
  }
  wake_read_ = ends[0];
  wake_write_ = ends[1];
}

input_poll::~input_poll() {
  ::close(wake_read_);
  ::close(wake_write_);
}

input_poll::result input_poll::wait(std::optional<std::chrono::milliseconds> limit) {
  std::array<pollfd, 2> look{{{input_, POLLIN, 0}, {wake_read_, POLLIN, 0}}};
  constexpr std::chrono::milliseconds most(std::numeric_limits<int>::max());
  const int timeout =
      limit ? static_cast<int>(std::clamp(*limit, std::chrono::milliseconds(0), most).count()) : -1;
  const int count = ::poll(look.data(), look.size(), timeout);
  if (count == 0) return result::timed_out;
  if (count == -1) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    return result::woken;
  }
  if (look[1].revents != 0) {
    char bytes[1024];
    while (::read(wake_read_, bytes, sizeof bytes) > 0) continue;
    return result::woken;
  }
  return result::readable;
}

void input_poll::wake() noexcept {
  // A full pipe has woken it already.
  if (::write(wake_write_, "", 1) == -1) return;
}

}  // namespace kclxx::io
