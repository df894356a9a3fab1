// SPDX-License-Identifier: Apache-2.0
#include "sharing/inheritance.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kclxx::sharing {

namespace {

/// The variable's value; nullptr when it is missing, or when it is a resident's that has started
/// this process.
const char* own_variable() {
  const char* value =
      std::getenv(resident_variable);  // NOLINT(concurrency-mt-unsafe): not set here
  if (value == nullptr || std::strtol(value, nullptr, 10) != ::getpid()) return nullptr;
  return value;
}

bool is_socket_with(int option, int value, int fd) {
  int has = -1;
  socklen_t size = sizeof has;
  return ::getsockopt(fd, SOL_SOCKET, option, &has, &size) == 0 && has == value;
}

/// main may have closed the descriptors, and opened files of its own, which get their numbers.
bool are_descriptors_there() {
  struct stat folder {};
  return is_socket_with(SO_TYPE, SOCK_SEQPACKET, listening_descriptor) &&
         is_socket_with(SO_ACCEPTCONN, 1, listening_descriptor) &&
         is_socket_with(SO_TYPE, SOCK_SEQPACKET, connection_descriptor) &&
         is_socket_with(SO_ACCEPTCONN, 0, connection_descriptor) &&
         ::fstat(folder_descriptor, &folder) == 0 && S_ISDIR(folder.st_mode);
}

/// Runs before main, which may start programs: none of them gets the descriptors.
[[gnu::constructor]] void keep_from_programs() {
  if (own_variable() == nullptr) return;
  for (const int fd : {listening_descriptor, connection_descriptor, folder_descriptor}) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

}  // namespace

std::optional<inheritance> inherited() {
  const char* value = own_variable();
  if (value == nullptr) return std::nullopt;
  std::istringstream fields(value);
  pid_t own{};
  inheritance start;
  fields >> own >> start.socket_inode >> start.daemon.id >> start.daemon.start >> start.socket_name;
  if (!fields) return std::nullopt;
  if (!are_descriptors_there()) {
    throw std::runtime_error("main has closed descriptors with which kclxx-share had started it");
  }
  start.listening = io::descriptor(listening_descriptor);
  start.connection = io::descriptor(connection_descriptor);
  start.folder = io::descriptor(folder_descriptor);
  return start;
}

void remove_socket(const inheritance& start, std::chrono::milliseconds limit) noexcept {
  const folder_lock lock(start.folder.get(), limit);
  struct stat file {};
  if (lock.is_held() &&
      ::fstatat(start.folder.get(), start.socket_name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
      file.st_ino == start.socket_inode) {
    ::unlinkat(start.folder.get(), start.socket_name.c_str(), 0);
  }
}

}  // namespace kclxx::sharing
