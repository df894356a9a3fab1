// SPDX-License-Identifier: Apache-2.0
#include "tool/process/poll.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <system_error>

namespace kclxx::cli {

bool poll_until(std::span<pollfd> all, std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const auto timeout = std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max());
    const int ready = ::poll(all.data(), all.size(), static_cast<int>(timeout));
    if (ready > 0) return true;
    if (ready == -1 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "poll");
    }
    if (ready == 0 && left <= timeout) return false;
  }
}

void set_non_blocking(const descriptor& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags == -1 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) == -1) {
    throw std::system_error(errno, std::generic_category(), "a pipe cannot be made non-blocking");
  }
}

}  // namespace kclxx::cli
