// SPDX-License-Identifier: Apache-2.0
#include "tool/capture/relay.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include "io/line_writer.hpp"

namespace kclxx::tool {

namespace {

using transcript::entry_kind;

// On a page's beginning the kernel copies out of a pipe several times as fast.
struct alignas(4096) page_aligned {
  std::array<char, std::size_t{256} << 10> bytes;
};

// True when something can be read or has ended; false when nobody reads `to`. A reader that is gone
// must be known to the writer as soon as without us, not when the next bytes come.
bool wait_for_bytes(const io::descriptor& source, const io::descriptor& target) {
  for (;;) {
    pollfd both[] = {{source.get(), POLLIN, 0}, {target.get(), 0, 0}};
    if (::poll(both, 2, -1) == -1) continue;  // EINTR
    if ((both[1].revents & (POLLERR | POLLNVAL)) != 0) return false;
    if (both[0].revents != 0) return true;
  }
}

}  // namespace

void relay(io::descriptor source, io::descriptor target, recorder& record,
           entry_kind line_of_side) {
  const auto memory = std::make_unique<page_aligned>();
  while (wait_for_bytes(source, target)) {
    const ssize_t n = ::read(source.get(), memory->bytes.data(), memory->bytes.size());
    if (n == -1 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) {
      record.add_end(line_of_side == entry_kind::daemon_line ? entry_kind::end_of_input
                                                             : entry_kind::end_of_output);
      return;
    }
    const std::string_view bytes(memory->bytes.data(), static_cast<std::size_t>(n));
    record.add(line_of_side, bytes);
    if (io::write_all(target.get(), bytes)) return;
  }
}

}  // namespace kclxx::tool
