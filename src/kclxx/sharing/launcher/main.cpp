// SPDX-License-Identifier: Apache-2.0
// kclxx-share PROGRAM ARGUMENTS...: a launcher for each shard, and a single process of the program.
// docs/sharing.md describes it.
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <kclxx/exit_status.hpp>
#include <kclxx/version.hpp>

#include "base/fnv.hpp"
#include "io/descriptor.hpp"
#include "io/process_identity.hpp"
#include "io/program_path.hpp"
#include "io/signals.hpp"
#include "sharing/inheritance.hpp"

namespace kclxx::sharing {

namespace {

/// Why a shard is not shared: a line that people read.
struct failure {
  char text[512] = {};
  /// Sets the text as printf does. A text that was set before stays.
  [[gnu::format(printf, 2, 3)]] void set(const char* format, ...) {
    if (is_set()) return;
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
  }
  [[nodiscard]] bool is_set() const { return text[0] != '\0'; }
};

// The program.

/// The program in whose place the launcher runs.
struct program {
  const char* path;
  char** arguments;  // with its name first, as the user wrote it
};

/// Whether the variable belongs to a shard: see shard_variables in inheritance.hpp.
bool is_shard_variable(const char* variable) {
  return std::strncmp(variable, shard_variables, sizeof shard_variables - 1) == 0;
}

/// Makes names differ; it protects nothing.
using hash = detail::fnv_hash;

/// Adds a text with its end, so that "a", "b" differs from "ab".
void add_text(hash& result, const char* text) { result.add({text, std::strlen(text) + 1}); }

void add_file(hash& result, const char* path) {
  struct stat status {};
  if (::stat(path, &status) == -1) return;
  result.add(status.st_dev);
  result.add(status.st_ino);
}

/// Becomes the program; the shell runs a script without #!, as when the daemon starts it. Returns
/// only when that fails, with errno.
void become(const program& program, char** environment) {
  ::execve(program.path, program.arguments, environment);
  if (errno != ENOEXEC) return;
  std::size_t count = 0;
  while (program.arguments[count] != nullptr) ++count;
  auto** with_shell = static_cast<char**>(std::calloc(count + 2, sizeof(char*)));
  if (with_shell == nullptr) return;
  static char shell[] = "/bin/sh";
  with_shell[0] = shell;
  with_shell[1] = const_cast<char*>(program.path);  // execve changes nothing
  for (std::size_t i = 1; i < count; ++i) with_shell[i + 1] = program.arguments[i];
  ::execve(shell, with_shell, environment);
}

/// A hash of everything that two shards must have in common, besides user and daemon, so that a
/// single process can serve them: the program's file and arguments, the environment without the
/// shards' variables, and the working directory.
std::uint64_t hash_of(const program& program, char** environment) {
  hash result;
  add_text(result, program.path);
  struct stat file {};
  if (::stat(program.path, &file) == 0) {
    result.add(file.st_dev);
    result.add(file.st_ino);
    result.add(static_cast<std::uint64_t>(file.st_size));
    result.add(static_cast<std::uint64_t>(file.st_mtim.tv_sec));
    result.add(static_cast<std::uint64_t>(file.st_mtim.tv_nsec));
  }
  for (char** argument = program.arguments; *argument != nullptr; ++argument) {
    add_text(result, *argument);
  }
  add_file(result, ".");
  // Containers may share a folder, and each has a process 1.
  add_file(result, "/proc/self/ns/pid");
  // A sum does not depend on the order of the variables.
  std::uint64_t variables = 0;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    if (is_shard_variable(*variable)) continue;
    hash variable_hash;
    add_text(variable_hash, *variable);
    variables += variable_hash.value();
  }
  result.add(variables);
  return result.value();
}

// The exchange with the resident.

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
  return io::uninterrupted([&] { return ::sendmsg(connection, &message, MSG_NOSIGNAL); }) != -1;
}

/// A launcher's side of the exchange with the resident. It waits for the end of the resident's
/// process, not of the connection: a program that the resident's main has started may hold that
/// open.
class hand_over {
 public:
  hand_over() = default;
  /// `process` is a pidfd of the resident. `child` is its number when this process has started it.
  hand_over(io::descriptor&& connection, io::descriptor&& process, pid_t child = -1)
      : connection_(std::move(connection)), process_(std::move(process)), child_(child) {}

  enum class answer {
    accepted,
    refused,      // with `reason`
    exited,       // the resident's process; it has touched nothing
    crashed,      // the resident's process, by a signal; known only of a child of this process
    input_ended,  // the daemon is gone
  };
  [[nodiscard]] bool is_own_child() const { return child_ != -1; }
  /// Offers the descriptors 0, 1 and 2, and waits for the answer. It may take long, while the
  /// program starts.
  answer offer_shard(const io::process_identity& daemon, char** environment, failure& reason) {
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
    } else if (std::memcmp(reply.header.magic, message_header().magic, sizeof reply.header.magic) !=
               0) {
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

  /// The exit status of the shard that was accepted; resident_gone when the resident has ended.
  int wait_for_end() {
    reply_message reply;
    if (receive(reply, -1) == event::message && reply.header.kind == message_kind::ended) {
      return reply.status;
    }
    int ignored = 0;
    has_exited(ignored);
    return static_cast<int>(exit_status::resident_gone);
  }

 private:
  enum class event { message, closed, process_ended, input_ended };
  /// Waits for an event. `input`: a descriptor whose writer may hang up, or -1.
  event receive(reply_message& reply, int input) const {
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
  bool has_exited(int& status) const {
    pollfd ended{process_.get(), POLLIN, 0};
    if (io::uninterrupted([&] { return ::poll(&ended, 1, 1000); }) != 1) return false;
    if (child_ != -1) ::waitpid(child_, &status, 0);
    return true;
  }

  io::descriptor connection_;
  io::descriptor process_;
  pid_t child_ = -1;
};

// Where the resident is found.

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

/// Where the launchers of a daemon and a program find their resident: a socket's file in a folder
/// to which only this user has access.
class meeting_place {
 public:
  /// Makes the folder where it is missing. Errors: `reason`.
  meeting_place(const io::process_identity& daemon, std::uint64_t hash, failure& reason) {
    std::snprintf(
        name_, sizeof name_, "%llu-%llu-%016llx", static_cast<unsigned long long>(daemon.id),
        static_cast<unsigned long long>(daemon.start), static_cast<unsigned long long>(hash));
    open_folder(reason);
  }

  [[nodiscard]] int folder() const { return folder_.get(); }
  [[nodiscard]] const char* name() const { return name_; }

  enum class found {
    resident,  // connected
    busy,      // the resident does not accept at present; returned after a short wait
    nobody,    // no resident, or an error in `reason`
  };
  found connect(hand_over& connection, failure& reason) const {
    return connect_to(name_, connection, reason);
  }

  /// Makes a resident's socket, in place of a dead resident's. Nobody listens there yet. Call it
  /// with the folder's lock. Errors: `reason`.
  [[nodiscard]] io::descriptor bind(std::uint64_t& inode, failure& reason) const {
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

  /// Removes the socket's file. Call it with the folder's lock.
  void remove() const { ::unlinkat(folder(), name_, 0); }
  /// Removes the socket's file if nobody listens there any more. Takes the lock.
  void remove_if_dead() const {
    const folder_lock lock(folder());
    failure why;
    hand_over ignored;
    if (lock.is_held() && connect(ignored, why) == found::nobody && !why.is_set()) remove();
  }

 private:
  void open_folder(failure& reason) {
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

  found connect_to(const char* name, hand_over& connection, failure& reason) const {
    const sockaddr_un address = address_of(folder(), name);
    io::descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) {
      reason.set("no socket to the resident: %s", std::strerror(errno));
      return found::nobody;
    }
    // connect() waits for so long when more launchers wait there than the system allows.
    constexpr timeval moment{0, 100'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment);
    const int result = io::uninterrupted([&] {
      return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    });
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
    // A program that the resident's main has started may keep the socket open, where nobody
    // accepts.
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

  /// Removes the sockets of daemons that are gone.
  void sweep() const {
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

  io::descriptor folder_;
  char name_[64] = {};
  char path_[108] = {};  // of the socket; empty when an address has no room for it
};

// The start of the resident.

constexpr int backlog = 4096;  // Linux allows as many: all shards of a daemon may start at once

/// Leaves the resident the descriptors 0 to 2, the three of inheritance.hpp, and no more. The
/// resident outlives the shard of this launcher, so of the shard's descriptors it gets only stderr,
/// to which it prints until it takes the shard over.
bool put_descriptors_in_place(int listening, int connection, int folder) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::array<int, 6> wanted{null,      STDERR_FILENO, STDERR_FILENO,
                                  listening, connection,    folder};
  std::array<int, 6> high{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    high[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, static_cast<int>(wanted.size()));
    if (high[i] == -1) return false;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (::dup2(high[i], static_cast<int>(i)) == -1) return false;
  }
  return ::syscall(SYS_close_range, wanted.size(), ~0U, 0) == 0;
}

struct sockets {
  io::descriptor listening;
  std::uint64_t inode = 0;
  std::array<io::descriptor, 2> connection;  // the end of this process, the end of the resident
  std::array<io::descriptor, 2> listens;     // a pipe, which ends when the resident listens
};

bool open_pair(std::array<io::descriptor, 2>& ends, bool is_pipe) {
  std::array<int, 2> fds{};
  const int result = is_pipe ? ::pipe2(fds.data(), O_CLOEXEC)
                             : ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data());
  if (result == -1) return false;
  ends = {io::descriptor(fds[0]), io::descriptor(fds[1])};
  return true;
}

[[noreturn]] void become_resident(const program& program, const io::process_identity& daemon,
                                  const meeting_place& place, const sockets& sockets,
                                  char** environment) {
  // The resident's process must listen itself: launchers learn which process that is (SO_PEERCRED).
  if (::listen(sockets.listening.get(), backlog) == -1) ::_exit(127);
  // A signal to the launcher's group is not meant for all shards of the daemon.
  ::setpgid(0, 0);
  char variable[256];
  std::snprintf(variable, sizeof variable, "%s=%ld %llu %llu %llu %s", resident_variable,
                static_cast<long>(::getpid()), static_cast<unsigned long long>(sockets.inode),
                static_cast<unsigned long long>(daemon.id),
                static_cast<unsigned long long>(daemon.start), place.name());
  std::size_t count = 0;
  while (environment[count] != nullptr) ++count;
  auto** extended = static_cast<char**>(std::calloc(count + 2, sizeof(char*)));
  if (extended != nullptr &&
      put_descriptors_in_place(sockets.listening.get(), sockets.connection[1].get(),
                               place.folder())) {
    std::copy_n(environment, count, extended + 1);
    extended[0] = variable;  // comes first, so that it counts although an older value may follow
    become(program, extended);
  }
  ::_exit(127);
}

/// Starts the program as the resident of this place. Call it with the folder's lock. The resident
/// listens when this returns. Errors: `reason`.
hand_over start_resident(const program& program, const io::process_identity& daemon,
                         const meeting_place& place, char** environment, failure& reason) {
  sockets sockets;
  sockets.listening = place.bind(sockets.inode, reason);
  if (reason.is_set()) return {};
  if (!open_pair(sockets.connection, false) || !open_pair(sockets.listens, true)) {
    reason.set("no socket for the resident: %s", std::strerror(errno));
    place.remove();
    return {};
  }
  const pid_t child = ::fork();
  if (child == 0) become_resident(program, daemon, place, sockets, environment);
  if (child == -1) {
    reason.set("the resident cannot be started: %s", std::strerror(errno));
    place.remove();
    return {};
  }
  sockets.connection[1].close();
  sockets.listening.close();
  sockets.listens[1].close();
  char byte = 0;
  io::uninterrupted([&] { return ::read(sockets.listens[0].get(), &byte, 1); });
  sockets.listens[0].close();
  io::descriptor process = io::open_process(static_cast<std::uint64_t>(child));
  if (!process.is_open()) reason.set("the resident cannot be watched: %s", std::strerror(errno));
  return {std::move(sockets.connection[0]), std::move(process), child};
}

// The launcher.

constexpr int usage_error = 2;
constexpr int cannot_start = 127;  // as a shell's

constexpr char usage[] =
    "usage: kclxx-share PROGRAM [ARGUMENT...]\n"
    "In the daemon's properties: executableName = kclxx-share PROGRAM ARGUMENT...\n"
    "One process of PROGRAM, which calls kclxx::run, serves all shards of the daemon. Where that "
    "is\n"
    "not possible PROGRAM is executed for this shard alone, and a warning gives the reason.\n";

bool is_pipe_or_socket(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

/// Leaves as a child does whose input has ended: with 0 when the daemon has asked for nothing.
[[noreturn]] void leave_without_daemon() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool is_asked = ::poll(&input, 1, 0) == 1 && (input.revents & POLLIN) != 0;
  if (is_asked)
    ::dprintf(STDERR_FILENO, "kclxx-share: the daemon has gone before it was answered\n");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads
  std::exit(static_cast<int>(is_asked ? exit_status::daemon_gone : exit_status::ok));
}

/// Leaves when the daemon is gone: nobody wants a program to be started then.
void leave_if_gone(const io::process_identity& daemon) {
  pollfd input{STDIN_FILENO, 0, 0};
  if (static_cast<std::uint64_t>(::getppid()) != daemon.id || ::poll(&input, 1, 0) == 1) {
    leave_without_daemon();
  }
}

/// Closes the shard's descriptors, which the resident has: the daemon waits for the end of all
/// copies.
void let_go() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null, standard) == -1) ::close(standard);
  }
  if (null > STDERR_FILENO) ::close(null);
}

/// Connects to the resident. Without a resident the launcher that has the folder's lock starts it,
/// while further launchers wait for the lock.
meeting_place::found find_resident(const program& program, const io::process_identity& daemon,
                                   const meeting_place& place, hand_over& connection,
                                   failure& reason) {
  const auto found = place.connect(connection, reason);
  if (found != meeting_place::found::nobody || reason.is_set()) return found;
  const folder_lock lock(place.folder());
  if (!lock.is_held()) reason.set("the folder cannot be locked: %s", std::strerror(errno));
  const auto again = reason.is_set() ? found : place.connect(connection, reason);
  if (again != meeting_place::found::nobody || reason.is_set()) return again;
  connection = start_resident(program, daemon, place, environ, reason);
  return meeting_place::found::resident;
}

/// Serves the shard to its end. Returns with the reason when it cannot be shared.
void share(const program& program, const io::process_identity& daemon, failure& reason) {
  if (!is_pipe_or_socket(STDIN_FILENO)) reason.set("stdin is neither a pipe nor a socket");
  if (reason.is_set()) return;
  const meeting_place place(daemon, hash_of(program, environ), reason);
  // A resident may be killed between two steps. The next round finds a new resident, or starts one.
  while (!reason.is_set()) {
    leave_if_gone(daemon);
    hand_over connection;
    const auto found = find_resident(program, daemon, place, connection, reason);
    if (reason.is_set() || found == meeting_place::found::busy) continue;
    int status = -1;
    switch (connection.offer_shard(daemon, environ, reason)) {
      case hand_over::answer::accepted:
        let_go();
        status = connection.wait_for_end();
        break;
      case hand_over::answer::input_ended:
        leave_without_daemon();
      case hand_over::answer::crashed:
        status = static_cast<int>(exit_status::resident_gone);
        break;
      case hand_over::answer::exited:
        place.remove_if_dead();
        if (connection.is_own_child()) {
          reason.set("the program ended before it took the shard over; it has to call kclxx::run");
        }
        break;
      case hand_over::answer::refused:
        break;
    }
    if (status == -1) continue;
    if (status == static_cast<int>(exit_status::resident_gone)) place.remove_if_dead();
    std::exit(status);  // NOLINT(concurrency-mt-unsafe): no threads
  }
}

}  // namespace

}  // namespace kclxx::sharing

int main(int count, char** arguments) {
  using namespace kclxx::sharing;
  namespace io = kclxx::io;
  if (count > 1 && std::strcmp(arguments[1], "--help") == 0) {
    ::dprintf(STDOUT_FILENO, "%s", usage);
    return 0;
  }
  if (count > 1 && std::strcmp(arguments[1], "--version") == 0) {
    ::dprintf(STDOUT_FILENO, "kclxx-share %s\n", kclxx::version);
    return 0;
  }
  io::outlive_signals();
  char** command = arguments + (count > 1 && std::strcmp(arguments[1], "--") == 0 ? 2 : 1);
  if (command - arguments >= count || **command == '-') {
    ::dprintf(STDERR_FILENO, "%s", usage);
    return usage_error;
  }
  static std::array<char, PATH_MAX> place;
  const program program{io::find_program(*command, place), command};
  if (program.path == nullptr) {
    ::dprintf(STDERR_FILENO, "kclxx-share: there is no program %s\n", *command);
    return cannot_start;
  }
  failure why;
  const io::process_identity daemon = io::parent_process();
  if (daemon.start != 0) {
    share(program, daemon, why);
    leave_if_gone(daemon);
  } else {
    why.set("the process that started it cannot be seen in /proc");
  }
  ::dprintf(STDERR_FILENO, "kclxx-share warning: %s; %s serves this shard alone\n", why.text,
            *command);
  become(program, environ);
  ::dprintf(STDERR_FILENO, "kclxx-share: %s cannot be started: %s\n", program.path,
            std::strerror(errno));
  return cannot_start;
}
