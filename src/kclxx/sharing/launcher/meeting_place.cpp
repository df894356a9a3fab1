// SPDX-License-Identifier: Apache-2.0
#include "sharing/launcher/meeting_place.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sharing/folder_lock.hpp"

namespace kclxx::sharing {

namespace {

const char* variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void write_folder_name(char (&buffer)[PATH_MAX]) {
  if (const char* runtime = variable("RUNTIME_DIRECTORY")) {
    // systemd's: several are separated by colons. It may be open to others, so a folder in it.
    const int first = static_cast<int>(std::strcspn(runtime, ":"));
    std::snprintf(buffer, sizeof buffer, "%.*s/kclxx-share", first, runtime);
  } else if (const char* session = variable("XDG_RUNTIME_DIR")) {
    std::snprintf(buffer, sizeof buffer, "%s/kclxx-share", session);
  } else {
    const char* temporary = variable("TMPDIR");
    std::snprintf(buffer, sizeof buffer, "%s/kclxx-share-%u",
                  temporary == nullptr ? "/tmp" : temporary, ::geteuid());
  }
}

/// Through the open folder, so that the path is short and leads to what was looked at.
sockaddr_un address_of(int folder, const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
  return address;
}

}  // namespace

meeting_place::meeting_place(const io::process_identity& daemon, std::uint64_t hash,
                             failure& reason) {
  std::snprintf(
      name_, sizeof name_, "%llu-%llu-%016llx", static_cast<unsigned long long>(daemon.id),
      static_cast<unsigned long long>(daemon.start), static_cast<unsigned long long>(hash));
  open_folder(reason);
}

void meeting_place::open_folder(failure& reason) {
  char path[PATH_MAX];
  write_folder_name(path);
  const int size = std::snprintf(path_, sizeof path_, "%s/%s", path, name_);
  if (path[0] != '/' || size >= static_cast<int>(sizeof path_)) path_[0] = '\0';
  if (::mkdir(path, 0700) == -1 && errno != EEXIST) {
    reason.set("the folder %s cannot be made: %s", path, std::strerror(errno));
    return;
  }
  folder_ = io::descriptor(::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder_.is_open() || ::fstat(folder_.get(), &status) == -1) {
    reason.set("the folder %s cannot be opened: %s", path, std::strerror(errno));
  } else if (status.st_uid != ::geteuid()) {
    reason.set("the folder %s belongs to the user %u", path, status.st_uid);
  } else if ((status.st_mode & 077) != 0) {
    reason.set("the folder %s is open to other users; chmod 700 %s", path, path);
  }
}

meeting_place::found meeting_place::connect_to(const char* name, hand_over& connection,
                                               failure& reason) const {
  const sockaddr_un address = address_of(folder(), name);
  io::descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    reason.set("no socket to the resident: %s", std::strerror(errno));
    return found::nobody;
  }
  // While more launchers wait there than the system allows.
  constexpr timeval moment{0, 100'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment);
  int result = -1;
  do {
    result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (result == -1 && errno == EINTR);
  if (result == -1 && errno == EAGAIN) return found::busy;
  if (result == -1) {
    if (errno != ENOENT && errno != ECONNREFUSED) {
      reason.set("the resident's socket cannot be reached: %s", std::strerror(errno));
    }
    return found::nobody;
  }
  constexpr timeval no_limit{};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &no_limit, sizeof no_limit);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1 ||
      peer.uid != ::geteuid()) {
    reason.set("the process at the resident's socket belongs to the user %u", peer.uid);
    return found::nobody;
  }
  // Where a program that the resident's main has started keeps the socket, nobody accepts.
  io::descriptor process = io::open_process(static_cast<std::uint64_t>(peer.pid));
  pollfd ended{process.get(), POLLIN, 0};
  if (process.is_open() ? ::poll(&ended, 1, 0) == 1 : errno == ESRCH) return found::nobody;
  if (!process.is_open()) {
    reason.set("the resident cannot be watched: %s", std::strerror(errno));
    return found::nobody;
  }
  connection = hand_over(std::move(socket), std::move(process));
  return found::resident;
}

io::descriptor meeting_place::bind(std::uint64_t& inode, failure& reason) const {
  sweep();
  remove();
  io::descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = address_of(folder(), name_);
  // systemd-tmpfiles knows by its path that a socket is in use.
  static_assert(sizeof path_ == sizeof address.sun_path);
  if (path_[0] != '\0') std::memcpy(address.sun_path, path_, sizeof path_);
  struct stat file {};
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == -1 ||
      ::fstatat(folder(), name_, &file, AT_SYMLINK_NOFOLLOW) == -1) {
    reason.set("the resident's socket cannot be made: %s", std::strerror(errno));
    remove();
    return {};
  }
  inode = file.st_ino;
  return socket;
}

void meeting_place::remove() const { ::unlinkat(folder(), name_, 0); }

void meeting_place::remove_if_dead() const {
  const folder_lock lock(folder());
  failure why;
  hand_over ignored;
  if (lock.is_held() && connect(ignored, why) == found::nobody && !why.is_set()) remove();
}

/// Removes the sockets of daemons that are gone.
void meeting_place::sweep() const {
  const int copy = ::openat(folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = copy == -1 ? nullptr : ::fdopendir(copy);
  if (entries == nullptr) {
    if (copy != -1) ::close(copy);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {  // NOLINT(concurrency-mt-unsafe): no threads
    char* rest = nullptr;
    io::process_identity daemon;
    daemon.id = std::strtoull(entry->d_name, &rest, 10);
    if (*rest != '-') continue;
    daemon.start = std::strtoull(rest + 1, &rest, 10);
    if (*rest != '-' || io::start_of(daemon.id) == daemon.start) continue;
    failure why;
    hand_over ignored;
    if (connect_to(entry->d_name, ignored, why) == found::nobody && !why.is_set()) {
      ::unlinkat(folder(), entry->d_name, 0);
    }
  }
  ::closedir(entries);
}

}  // namespace kclxx::sharing
