// SPDX-License-Identifier: Apache-2.0
#include "io/input_poll.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>

namespace kclxx::io {

bool has_input(int fd) noexcept {
  pollfd look{fd, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
}

input_poll::input_poll(int input) : input_(input) {
  // poll(2) would wait on it until the end of time.
  if (input < 0) throw std::system_error(EBADF, std::generic_category(), "the input");
  wake_ = descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_open()) throw std::system_error(errno, std::generic_category(), "eventfd");
}

input_poll::result input_poll::wait(std::optional<std::chrono::milliseconds> limit) {
  std::array<pollfd, 2> look{{{input_, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
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
    eventfd_t wakes = 0;
    if (::eventfd_read(wake_.get(), &wakes) == 0) return result::woken;
    // User code has closed it.
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  return result::readable;
}

void input_poll::wake() noexcept { ::eventfd_write(wake_.get(), 1); }

}  // namespace kclxx::io
