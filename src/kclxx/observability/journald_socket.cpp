// SPDX-License-Identifier: Apache-2.0
#include "observability/journald_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace kclxx::observability {

bool journald_socket::is_stream(int fd, std::string_view journal_stream) {
  struct stat about {};
  if (journal_stream.empty() || ::fstat(fd, &about) != 0) return false;
  return journal_stream == std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

journald_socket::journald_socket(std::string path)
    : path_(std::move(path)), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

journald_socket::~journald_socket() {
  if (socket_ >= 0) ::close(socket_);
}

/// Not connected: journald may restart.
bool journald_socket::send(std::string_view datagram) const noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) return false;
  path_.copy(static_cast<char*>(address.sun_path), path_.size());
  const auto sent =
      ::sendto(socket_, datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as POSIX demands
               reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return sent == static_cast<ssize_t>(datagram.size());
}

}  // namespace kclxx::observability
