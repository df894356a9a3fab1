// SPDX-License-Identifier: Apache-2.0
// What a resident takes from a launcher, over a socket pair; tests/process/sharing_test.cpp has the
// packets that do not fit.
#include "sharing/handed_shard.hpp"

#include <array>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <variant>

#include "support/catch.hpp"

namespace kclxx::sharing {

namespace {

struct socket_pair {
  socket_pair() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  }
  ~socket_pair() {
    for (const int fd : ends) ::close(fd);
  }
  std::array<int, 2> ends{};
};

const process_identity daemon{42, 4711};

void send_shard(int to, const std::string& variables) {
  shard_message message;
  message.daemon = daemon;
  std::string bytes(reinterpret_cast<const char*>(&message), sizeof message);
  bytes += variables;
  iovec piece{bytes.data(), bytes.size()};
  constexpr std::array<int, 3> descriptors{0, 1, 2};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr packet{};
  packet.msg_iov = &piece;
  packet.msg_iovlen = 1;
  packet.msg_control = control.data();
  packet.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&packet);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
  REQUIRE(::sendmsg(to, &packet, 0) != -1);
}

}  // namespace

TEST_CASE("a shard's variables travel with it", "[sharing]") {
  const socket_pair sockets;
  using std::string_literals::operator""s;
  send_shard(sockets.ends[0], "KCLXX_STREAM_NAME=orders\0KCLXX_EMPTY=\0KCLXX_LAST=a=b"s);
  const auto received = receive_shard(sockets.ends[1], daemon);
  REQUIRE(std::holds_alternative<handed_shard>(received));
  const auto& shard = std::get<handed_shard>(received);
  CHECK(shard.variable("KCLXX_STREAM_NAME") == "orders");
  CHECK(shard.variable("KCLXX_LAST") == "a=b");
  CHECK_FALSE(shard.variable("KCLXX_EMPTY"));
  CHECK_FALSE(shard.variable("KCLXX_STREAM"));
  CHECK(shard.input.is_open());
  CHECK(shard.error.get() != shard.output.get());
}

TEST_CASE("a launcher that has sent nothing, or is gone, hands nothing over", "[sharing]") {
  socket_pair sockets;
  CHECK(std::holds_alternative<nothing>(receive_shard(sockets.ends[1], daemon)));
  ::shutdown(sockets.ends[0], SHUT_WR);
  CHECK(std::holds_alternative<nothing>(receive_shard(sockets.ends[1], daemon)));
}

TEST_CASE("an answer to a launcher that is gone fails, and raises no signal", "[sharing]") {
  socket_pair sockets;
  ::close(sockets.ends[0]);
  CHECK_FALSE(send_accepted(sockets.ends[1]));
  CHECK_FALSE(send_ended(sockets.ends[1], 0));
  sockets.ends[0] = -1;
}

TEST_CASE("a reason that is too long is cut", "[sharing]") {
  const socket_pair sockets;
  CHECK(send_refused(sockets.ends[1], std::string(1000, 'x')));
  reply_message reply;
  REQUIRE(::recv(sockets.ends[0], &reply, sizeof reply, 0) == sizeof reply);
  CHECK(reply.header.kind == message_kind::refused);
  CHECK(std::string(reply.reason) == std::string(sizeof reply.reason - 1, 'x'));
}

}  // namespace kclxx::sharing
