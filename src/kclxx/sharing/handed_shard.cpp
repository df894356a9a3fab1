// SPDX-License-Identifier: Apache-2.0
#include "sharing/handed_shard.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/stdio_guard.hpp"
#include "sharing/inheritance.hpp"

namespace kclxx::sharing {

namespace {

constexpr std::size_t descriptor_count = 3;

/// All descriptors that came, also when they are more than are wanted: they are open in this
/// process, so each gets an owner, who closes it.
std::vector<io::descriptor> descriptors_in(msghdr& message) {
  std::vector<io::descriptor> received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      if (io::descriptor moved = above_standard(io::descriptor(fd)); moved.is_open()) {
        received.push_back(std::move(moved));
      }
    }
  }
  return received;
}

std::vector<std::string> variables_in(std::string_view text) {
  std::vector<std::string> variables;
  while (!text.empty()) {
    const std::string_view variable = text.substr(0, text.find('\0'));
    variables.emplace_back(variable);
    text.remove_prefix(std::min(variable.size() + 1, text.size()));
  }
  return variables;
}

bool send(int connection, const reply_message& reply) noexcept {
  return io::uninterrupted([&] {
           return ::send(connection, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
         }) != -1;
}

}  // namespace

std::optional<std::string> handed_shard::variable(std::string_view name) const {
  for (const std::string& variable : variables) {
    if (variable.size() > name.size() + 1 && variable.starts_with(name) &&
        variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::variant<handed_shard, refusal, nothing> receive_shard(int connection,
                                                           const io::process_identity& daemon) {
  std::string packet(sizeof(shard_message) + max_variables, '\0');
  alignas(cmsghdr) std::array<char, CMSG_SPACE(descriptor_count * sizeof(int))> control{};
  std::array pieces{iovec{packet.data(), packet.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = io::uninterrupted(
      [&] { return ::recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
  if (size == -1) return nothing{};
  packet.resize(static_cast<std::size_t>(size));
  // Comes before every return below: a descriptor without an owner would stay open for ever, and
  // the daemon would wait for its end.
  auto descriptors = descriptors_in(message);

  message_header header;
  if (packet.size() < sizeof header) return nothing{};
  std::memcpy(&header, packet.data(), sizeof header);
  static const message_header expected;
  if (!std::equal(std::begin(header.magic), std::end(header.magic), expected.magic)) {
    return nothing{};
  }
  if (header.version != hand_over_version) {
    return refusal{"kclxx-share has version " + std::to_string(header.version) +
                   " of the hand-over, and the program has version " +
                   std::to_string(hand_over_version)};
  }
  shard_message shard;
  if (header.kind != message_kind::shard || packet.size() < sizeof shard) return nothing{};
  std::memcpy(&shard, packet.data(), sizeof shard);
  if (shard.daemon != daemon) return refusal{"it serves another daemon"};
  if (descriptors.size() != descriptor_count || (message.msg_flags & MSG_CTRUNC) != 0) {
    return refusal{"it has no room for three more descriptors (ulimit -n)"};
  }
  return handed_shard{std::move(descriptors[0]), std::move(descriptors[1]),
                      std::move(descriptors[2]),
                      variables_in(std::string_view(packet).substr(sizeof shard)), daemon};
}

std::optional<uid_t> user_of_peer(int connection) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1) return std::nullopt;
  return peer.uid;
}

bool send_accepted(int connection) noexcept {
  return send(connection, {.header = {.kind = message_kind::accepted}});
}

bool send_refused(int connection, std::string_view reason) noexcept {
  reply_message reply{.header = {.kind = message_kind::refused}};
  reason.copy(reply.reason, sizeof reply.reason - 1);
  return send(connection, reply);
}

bool send_ended(int connection, int status) noexcept {
  return send(connection, {.header = {.kind = message_kind::ended}, .status = status});
}

process_output::process_output() {
  io::descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  null_ = io::descriptor(::fcntl(null.get(), F_DUPFD_CLOEXEC, 3));
  if (!null_.is_open()) throw std::system_error(errno, std::generic_category(), "/dev/null");
  null.close();
  // main may have closed a standard descriptor. A shard's descriptor would get its number.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) == -1) ::dup2(null_.get(), standard);
  }
  io::buffer_stdout_by_line();
}

io::descriptor above_standard(io::descriptor&& fd) noexcept {
  if (fd.get() > STDERR_FILENO || !fd.is_open()) return std::move(fd);
  const io::descriptor low = std::move(fd);
  return io::descriptor(::fcntl(low.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

void process_output::add(int error_of_shard) {
  errors_.push_back(error_of_shard);
  if (errors_.size() == 1) lead();
}

void process_output::remove(int error_of_shard) noexcept {
  const auto found = std::find(errors_.begin(), errors_.end(), error_of_shard);
  if (found == errors_.end()) return;
  const bool is_oldest = found == errors_.begin();
  errors_.erase(found);
  if (is_oldest) lead();
}

void process_output::no_shard_comes() noexcept {
  if (errors_.empty()) lead();
}

void process_output::lead() const noexcept {
  const int to = errors_.empty() ? null_.get() : errors_.front();
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    while (::dup2(to, standard) == -1 && (errno == EBUSY || errno == EINTR)) continue;
  }
}

}  // namespace kclxx::sharing
