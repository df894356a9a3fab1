// SPDX-License-Identifier: Apache-2.0
#include "sharing/resident_start.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace kclxx::sharing {

namespace {

/// Private: no program that is started here gets it.
io::descriptor take(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return io::descriptor(fd);
}

}  // namespace

std::optional<resident_start> started_as_resident() {
  const char* value =
      std::getenv(resident_variable);  // NOLINT(concurrency-mt-unsafe): not set here
  if (value == nullptr) return std::nullopt;
  std::istringstream fields(value);
  pid_t own{};
  resident_start start;
  fields >> own >> start.socket_inode >> start.daemon.id >> start.daemon.start >> start.socket_name;
  // A resident's own children inherit the variable.
  if (!fields || own != ::getpid()) return std::nullopt;
  start.listening = take(listening_descriptor);
  start.connection = take(connection_descriptor);
  start.folder = take(folder_descriptor);
  return start;
}

void remove_socket(const resident_start& of) noexcept {
  while (::flock(of.folder.get(), LOCK_EX) == -1 && errno == EINTR) continue;
  struct stat file {};
  if (::fstatat(of.folder.get(), of.socket_name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
      file.st_ino == of.socket_inode) {
    ::unlinkat(of.folder.get(), of.socket_name.c_str(), 0);
  }
  ::flock(of.folder.get(), LOCK_UN);
}

io::descriptor watch(const process_identity& process) {
  // By its number: <sys/pidfd.h> is not there before glibc 2.36.
  io::descriptor watched(static_cast<int>(::syscall(SYS_pidfd_open, process.id, 0)));
  if (!watched.is_open()) throw std::system_error(errno, std::generic_category(), "pidfd_open");
  if (start_of(process.id) != process.start) {
    throw std::system_error(ESRCH, std::generic_category(), "the daemon");
  }
  return watched;
}

}  // namespace kclxx::sharing
