// SPDX-License-Identifier: Apache-2.0
#include "share/meeting_place.hpp"

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "share/identity.hpp"

namespace kclxx::share {

namespace {

constexpr int backlog = 4096;  // what Linux allows: a start of the daemon is a start of all shards

const char* variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void write_folder_name(char (&to)[PATH_MAX]) {
  if (const char* runtime = variable("RUNTIME_DIRECTORY")) {
    // systemd's: several are separated by colons. It may be open to others, so a folder in it.
    const int first = static_cast<int>(std::strcspn(runtime, ":"));
    std::snprintf(to, sizeof to, "%.*s/kclxx-share", first, runtime);
  } else if (const char* session = variable("XDG_RUNTIME_DIR")) {
    std::snprintf(to, sizeof to, "%s/kclxx-share", session);
  } else {
    const char* temporary = variable("TMPDIR");
    std::snprintf(to, sizeof to, "%s/kclxx-share-%u", temporary == nullptr ? "/tmp" : temporary,
                  ::geteuid());
  }
}

/// The lock of the folder, for as long as it lives; a process that is killed has none.
class folder_lock {
 public:
  explicit folder_lock(int folder) : folder_(folder) {
    while (::flock(folder_, LOCK_EX) == -1 && errno == EINTR) continue;
  }
  ~folder_lock() { ::flock(folder_, LOCK_UN); }
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

 private:
  int folder_;
};

/// Through the open folder, so that the path is short and leads to what was looked at.
sockaddr_un address_of(int folder, const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
  return address;
}

}  // namespace

void failure::set(const char* format, ...) {
  if (is_set()) return;
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
}

meeting_place::meeting_place(const sharing::process_identity& daemon, std::uint64_t hash,
                             failure& why) {
  std::snprintf(
      name_, sizeof name_, "%llu-%llu-%016llx", static_cast<unsigned long long>(daemon.id),
      static_cast<unsigned long long>(daemon.start), static_cast<unsigned long long>(hash));
  open_folder(why);
}

meeting_place::meeting_place(const char* name, failure& why) {
  std::snprintf(name_, sizeof name_, "%s", name);
  open_folder(why);
}

void meeting_place::open_folder(failure& why) {
  char path[PATH_MAX];
  write_folder_name(path);
  if (::mkdir(path, 0700) == -1 && errno != EEXIST) {
    why.set("the folder %s cannot be made: %s", path, std::strerror(errno));
    return;
  }
  folder_ = io::descriptor(::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder_.is_open() || ::fstat(folder_.get(), &status) == -1) {
    why.set("the folder %s cannot be opened: %s", path, std::strerror(errno));
  } else if (status.st_uid != ::geteuid()) {
    why.set("the folder %s belongs to the user %u", path, status.st_uid);
  } else if ((status.st_mode & 077) != 0) {
    why.set("the folder %s is open to other users; chmod 700 %s", path, path);
  }
}

io::descriptor meeting_place::connect(failure& why) const { return connect_to(name_, why); }

io::descriptor meeting_place::connect_to(const char* name, failure& why) const {
  const sockaddr_un address = address_of(folder(), name);
  io::descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  int result = -1;
  do {
    result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (result == -1 && errno == EINTR);
  if (result == -1) {
    if (errno != ENOENT && errno != ECONNREFUSED) {
      why.set("the resident's socket cannot be reached: %s", std::strerror(errno));
    }
    return {};
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1 ||
      peer.uid != ::geteuid()) {
    why.set("the process at the resident's socket belongs to the user %u", peer.uid);
    return {};
  }
  return socket;
}

meeting_place::found meeting_place::connect_or_listen(failure& why) const {
  const folder_lock lock(folder());
  found result;
  result.connection = connect(why);
  if (result.connection.is_open() || why.is_set()) return result;
  sweep();
  ::unlinkat(folder(), name_, 0);
  io::descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(folder(), name_);
  struct stat file {};
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == -1 ||
      ::fstatat(folder(), name_, &file, AT_SYMLINK_NOFOLLOW) == -1 ||
      ::listen(socket.get(), backlog) == -1) {
    why.set("the resident's socket cannot be made: %s", std::strerror(errno));
    ::unlinkat(folder(), name_, 0);
    return result;
  }
  result.inode = file.st_ino;
  result.listening = std::move(socket);
  return result;
}

void meeting_place::remove_if_dead() const {
  const folder_lock lock(folder());
  failure ignored;
  const io::descriptor connection = connect(ignored);
  if (!connection.is_open() && !ignored.is_set()) ::unlinkat(folder(), name_, 0);
}

/// Daemons that were killed together with all their children have left files. One whose daemon
/// runs elsewhere, in another container, still answers.
void meeting_place::sweep() const {
  const int copy = ::openat(folder(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = copy == -1 ? nullptr : ::fdopendir(copy);
  if (entries == nullptr) {
    if (copy != -1) ::close(copy);
    return;
  }
  while (const dirent* entry = ::readdir(entries)) {  // NOLINT(concurrency-mt-unsafe): no threads
    char* rest = nullptr;
    sharing::process_identity daemon;
    daemon.id = std::strtoull(entry->d_name, &rest, 10);
    if (*rest != '-') continue;
    daemon.start = std::strtoull(rest + 1, &rest, 10);
    if (*rest != '-' || is_running(daemon)) continue;
    failure why;
    const io::descriptor connection = connect_to(entry->d_name, why);
    if (!connection.is_open() && !why.is_set()) ::unlinkat(folder(), entry->d_name, 0);
  }
  ::closedir(entries);
}

}  // namespace kclxx::share
