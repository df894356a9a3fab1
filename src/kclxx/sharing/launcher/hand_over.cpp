// SPDX-License-Identifier: Apache-2.0
#include "sharing/launcher/hand_over.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

#include "sharing/launcher/program.hpp"
#include "sharing/messages.hpp"

namespace kclxx::sharing {

namespace {

bool is_readable(const reply_message& reply) {
  static const message_header expected;
  return std::memcmp(reply.header.magic, expected.magic, sizeof expected.magic) == 0;
}

constexpr std::size_t max_variable_count = 128;

/// One packet: the message, and the shard's variables where they are.
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

/// Waits. `input` is looked at for a writer that has hung up; -1: for none.
hand_over::event hand_over::receive(reply_message& reply, int input) const {
  std::array look{pollfd{connection_.get(), POLLIN, 0}, pollfd{process_.get(), POLLIN, 0},
                  pollfd{input, 0, 0}};
  for (;;) {
    if (::poll(look.data(), look.size(), -1) == -1) continue;
    // After a look at the process: what it sent before its end is here by now.
    reply = {};
    const ssize_t size = ::recv(connection_.get(), &reply, sizeof reply, MSG_DONTWAIT);
    if (size > 0) return event::message;
    // A reset comes before what was received until then.
    if (size == -1 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (size == 0) return event::closed;
    if (look[1].revents != 0) return event::process_ended;
    if (look[2].revents != 0) return event::input_ended;
  }
}

/// One that has closed the connection may be on its way: waits for a second.
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
  // One that has closed the connection may have answered before.
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
    // Or the program would find it among its children, once it has left.
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

}  // namespace kclxx::sharing
