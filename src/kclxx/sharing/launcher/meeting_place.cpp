// SPDX-License-Identifier: Apache-2.0
#include "sharing/launcher/meeting_place.hpp"

#include <array>
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
#include <sys/wait.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

#include "sharing/inheritance.hpp"

namespace kclxx::sharing {

namespace {

bool is_readable(const reply_message& reply) {
  static const message_header expected;
  return std::memcmp(reply.header.magic, expected.magic, sizeof expected.magic) == 0;
}

constexpr std::size_t max_variable_count = 128;

/// Sends a packet: the message, and the shard's variables from where they are.
/// Errors: E2BIG when they are too many or too long, and those of sendmsg.
bool send_shard(int connection, const io::process_identity& daemon, char** environment) {
  shard_message shard;
  shard.daemon = daemon;
  std::array<iovec, 1 + max_variable_count> pieces{};
  pieces[0] = {&shard, sizeof shard};
  std::size_t count = 1;
  std::size_t size = 0;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    if (!is_shard_variable(*variable)) continue;
    const std::size_t length = std::strlen(*variable) + 1;
    size += length;
    if (count == pieces.size() || size > max_variables) {
      errno = E2BIG;
      return false;
    }
    pieces[count++] = {*variable, length};
  }
  constexpr std::array<int, 3> descriptors{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(connection, &message, MSG_NOSIGNAL);
  } while (sent == -1 && errno == EINTR);
  return sent != -1;
}

}  // namespace

/// Waits for an event. `input`: a descriptor whose writer may hang up, or -1.
hand_over::event hand_over::receive(reply_message& reply, int input) const {
  std::array look{pollfd{connection_.get(), POLLIN, 0}, pollfd{process_.get(), POLLIN, 0},
                  pollfd{input, 0, 0}};
  for (;;) {
    if (::poll(look.data(), look.size(), -1) == -1) continue;
    // The process is looked at before the connection: so a message that it sent before its end is
    // not missed.
    reply = {};
    const ssize_t size = ::recv(connection_.get(), &reply, sizeof reply, MSG_DONTWAIT);
    if (size > 0) return event::message;
    // A reset is reported before the messages that had arrived.
    if (size == -1 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (size == 0) return event::closed;
    if (look[1].revents != 0) return event::process_ended;
    if (look[2].revents != 0) return event::input_ended;
  }
}

/// A resident that has closed the connection may be about to end: waits for a second.
bool hand_over::has_exited(int& status) const {
  pollfd ended{process_.get(), POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&ended, 1, 1000);
  } while (ready == -1 && errno == EINTR);
  if (ready != 1) return false;
  if (child_ != -1) ::waitpid(child_, &status, 0);
  return true;
}

hand_over::answer hand_over::offer_shard(const io::process_identity& daemon, char** environment,
                                         failure& reason) {
  // A resident that has closed the connection may have answered before.
  if (!send_shard(connection_.get(), daemon, environment) && errno != EPIPE &&
      errno != ECONNRESET) {
    reason.set("the shard cannot be handed over: %s", std::strerror(errno));
    return answer::refused;
  }
  reply_message reply;
  const event received = receive(reply, STDIN_FILENO);
  if (received == event::input_ended) return answer::input_ended;
  if (received != event::message) {
    int status = 0;
    if (has_exited(status)) return WIFSIGNALED(status) ? answer::crashed : answer::exited;
    reason.set("the resident has closed the connection");
  } else if (!is_readable(reply)) {
    reason.set("something else than a resident answers at its socket");
  } else if (reply.header.version != hand_over_version) {
    reason.set("the resident has version %u of the hand-over, and kclxx-share has version %u",
               reply.header.version, hand_over_version);
  } else if (reply.header.kind != message_kind::accepted) {
    reply.reason[sizeof reply.reason - 1] = '\0';
    reason.set("the program refused: %s", reply.reason);
    // This process becomes the program, which would find the refusing child among its children.
    int ignored = 0;
    if (is_own_child()) has_exited(ignored);
  }
  return reason.is_set() ? answer::refused : answer::accepted;
}

int hand_over::wait_for_end() {
  reply_message reply;
  if (receive(reply, -1) == event::message && reply.header.kind == message_kind::ended) {
    return reply.status;
  }
  int ignored = 0;
  has_exited(ignored);
  return static_cast<int>(exit_status::resident_gone);
}

namespace {

const char* variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void write_folder_name(char (&buffer)[PATH_MAX]) {
  if (const char* runtime = variable("RUNTIME_DIRECTORY")) {
    // systemd sets it, and separates several by colons. Further users may have access to it, so a
    // folder is made in it.
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

/// The address goes through the open folder, so that it is short and leads to the folder that was
/// checked.
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
    reason.set(
        "the folder %s belongs to the user %u, so each shard has a process of its own until "
        "XDG_RUNTIME_DIR or TMPDIR names a directory that only this user can write to",
        path, status.st_uid);
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
  // connect() waits for so long when more launchers wait there than the system allows.
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
  // A program that the resident's main has started may keep the socket open, where nobody accepts.
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
  // systemd-tmpfiles knows by its full path that a socket is in use.
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
    char* end = nullptr;
    io::process_identity daemon;
    daemon.id = std::strtoull(entry->d_name, &end, 10);
    if (*end != '-') continue;
    daemon.start = std::strtoull(end + 1, &end, 10);
    if (*end != '-' || io::start_of(daemon.id) == daemon.start) continue;
    failure why;
    hand_over ignored;
    if (connect_to(entry->d_name, ignored, why) == found::nobody && !why.is_set()) {
      ::unlinkat(folder(), entry->d_name, 0);
    }
  }
  ::closedir(entries);
}

}  // namespace kclxx::sharing
