// SPDX-License-Identifier: Apache-2.0
#include "share/resident_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sharing/hand_over.hpp"

namespace kclxx::share {

namespace {

using sharing::message_kind;

/// What the resident is started with: 0 to 2, the three of hand_over.hpp, and nothing else. It
/// outlives this process, so nothing of the shard's may stay in it but stderr, for what it prints
/// until it takes the shard over.
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

[[noreturn]] void become_resident(const program& what, const sharing::process_identity& daemon,
                                  const meeting_place& place, const meeting_place::found& socket,
                                  int connection, char** environment) {
  // A signal to the launcher's group is not meant for all shards of the daemon.
  ::setpgid(0, 0);
  char variable[256];
  std::snprintf(variable, sizeof variable, "%s=%ld %llu %llu %llu %s", sharing::resident_variable,
                static_cast<long>(::getpid()), static_cast<unsigned long long>(socket.inode),
                static_cast<unsigned long long>(daemon.id),
                static_cast<unsigned long long>(daemon.start), place.name());
  std::size_t count = 0;
  while (environment[count] != nullptr) ++count;
  auto** extended = static_cast<char**>(std::calloc(count + 2, sizeof(char*)));
  if (extended != nullptr &&
      put_descriptors_in_place(socket.listening.get(), connection, place.folder())) {
    std::copy_n(environment, count, extended + 1);
    extended[0] = variable;  // the first counts, should there be an older one
    become(what, extended);
  }
  ::_exit(127);
}

/// -1 with errno; 0: the other side is gone.
ssize_t receive(int connection, sharing::reply_message& reply) {
  for (;;) {
    const ssize_t size = ::recv(connection, &reply, sizeof reply, 0);
    // A reset comes before what was received until then.
    if (size == -1 && (errno == EINTR || errno == ECONNRESET)) continue;
    return size;
  }
}

bool is_readable(const sharing::reply_message& reply, ssize_t size) {
  static const sharing::message_header expected;
  return size >= static_cast<ssize_t>(sizeof reply.header) &&
         std::memcmp(reply.header.magic, expected.magic, sizeof expected.magic) == 0;
}

constexpr std::size_t max_variable_count = 128;

/// One packet: the message, and the shard's variables where they are.
/// Errors: E2BIG when they are too many or too long, and those of sendmsg.
bool send_shard(int connection, const sharing::process_identity& daemon, char** environment) {
  sharing::shard_message shard;
  shard.daemon = daemon;
  std::array<iovec, 1 + max_variable_count> pieces{};
  pieces[0] = {&shard, sizeof shard};
  std::size_t count = 1;
  std::size_t size = 0;
  for (char** one = environment; *one != nullptr; ++one) {
    if (!is_shard_variable(*one)) continue;
    const std::size_t length = std::strlen(*one) + 1;
    size += length;
    if (count == pieces.size() || size > sharing::max_variables) {
      errno = E2BIG;
      return false;
    }
    pieces[count++] = {*one, length};
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

resident_process::resident_process(const program& what, const sharing::process_identity& daemon,
                                   const meeting_place& place, const meeting_place::found& socket,
                                   char** environment, failure& why) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == -1) {
    why.set("no socket for the resident: %s", std::strerror(errno));
    return;
  }
  connection_ = io::descriptor(ends[0]);
  const io::descriptor its(ends[1]);
  process_ = ::fork();
  if (process_ == -1) why.set("the resident cannot be started: %s", std::strerror(errno));
  if (process_ == 0) become_resident(what, daemon, place, socket, its.get(), environment);
}

resident_process::answer resident_process::offer_shard(const sharing::process_identity& daemon,
                                                       char** environment, failure& why) {
  // One that has closed the connection may have answered before.
  if (!send_shard(connection_.get(), daemon, environment) && errno != EPIPE &&
      errno != ECONNRESET) {
    why.set("the shard cannot be handed over: %s", std::strerror(errno));
    return answer::refused;
  }
  sharing::reply_message reply;
  const ssize_t received = receive(connection_.get(), reply);
  if (received == 0) return answer::none;
  if (!is_readable(reply, received)) {
    why.set("something else than a resident answers at its socket");
  } else if (reply.header.version != sharing::hand_over_version) {
    why.set("the resident has version %u of the hand-over, and kclxx-share has version %u",
            reply.header.version, sharing::hand_over_version);
  } else if (reply.header.kind != message_kind::accepted) {
    reply.reason[sizeof reply.reason - 1] = '\0';
    why.set("the program refused: %s", reply.reason);
  }
  if (why.is_set()) return answer::refused;
  process_ = reply.process;
  return answer::accepted;
}

void wait_for_exit(pid_t process) {
  if (process == -1) return;
  const io::descriptor watched(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  pollfd ended{watched.get(), POLLIN, 0};
  if (watched.is_open()) ::poll(&ended, 1, 1000);
  ::waitpid(process, nullptr, WNOHANG);  // it may be a child of this process
}

}  // namespace kclxx::share
