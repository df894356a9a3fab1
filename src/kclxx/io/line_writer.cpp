// SPDX-License-Identifier: Apache-2.0
#include "io/line_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

namespace kclxx::io {

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
      // Full, or unknown there: Linux before 6.5 cannot do it with a pipe.
      pollfd writable{fd, POLLOUT, 0};
      const int ready = ::poll(&writable, 1, 0);
      if (ready == 0) return {};
      // A pipe that is writable has room for that. After a signal it is not known.
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

}  // namespace kclxx::io
