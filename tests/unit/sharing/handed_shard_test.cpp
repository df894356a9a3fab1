// SPDX-License-Identifier: Apache-2.0
// What a resident takes from a launcher, over a socket pair; tests/process/sharing_test.cpp has the
// packets that do not fit.
#include "sharing/handed_shard.hpp"

#include <array>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <variant>
#include <vector>

#include "sharing/inheritance.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/forked.hpp"
#include "support/sent_packet.hpp"

namespace kclxx::sharing {

namespace {

using test::bytes_of;
using test::send_packet;
using std::string_literals::operator""s;

struct socket_pair {
  socket_pair() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  }
  ~socket_pair() {
    for (const int fd : ends) ::close(fd);
  }
  std::array<int, 2> ends{};
};

const io::process_identity daemon{42, 4711};

shard_message own_message() {
  shard_message message;
  message.daemon = daemon;
  return message;
}

const std::vector<int> three{0, 1, 2};

std::variant<handed_shard, refusal, nothing> received(const std::string& bytes,
                                                      const std::vector<int>& fds = three) {
  const socket_pair sockets;
  send_packet(sockets.ends[0], bytes, fds);
  return receive_shard(sockets.ends[1], daemon);
}

bool is_nothing(const std::string& bytes) {
  return std::holds_alternative<nothing>(received(bytes));
}

std::string reason_of(const std::variant<handed_shard, refusal, nothing>& answer) {
  REQUIRE(std::holds_alternative<refusal>(answer));
  return std::get<refusal>(answer).reason;
}

}  // namespace

TEST_CASE("a shard's variables travel with it", "[sharing]") {
  const auto answer =
      received(bytes_of(own_message()) +
               "KCLXX_STREAM_NAME=orders\0KCLXX_EMPTY=\0KCLXX_ONE=1\0KCLXX_LAST=a=b"s);
  REQUIRE(std::holds_alternative<handed_shard>(answer));
  const auto& shard = std::get<handed_shard>(answer);
  CHECK(shard.variables.size() == 4);
  CHECK(shard.variable("KCLXX_STREAM_NAME") == "orders");
  CHECK(shard.variable("KCLXX_ONE") == "1");
  CHECK(shard.variable("KCLXX_LAST") == "a=b");
  CHECK_FALSE(shard.variable("KCLXX_EMPTY"));
  CHECK_FALSE(shard.variable("KCLXX_STREAM"));
}

TEST_CASE("a packet that is no launcher's is nothing, and its descriptors are closed",
          "[sharing]") {
  const auto before = test::count_of("/proc/self/fd");
  const std::string whole = bytes_of(own_message());
  SECTION("another magic") { CHECK(is_nothing("k" + whole)); }
  SECTION("half a header, of another version") { CHECK(is_nothing("kclxx-sh\2\0"s)); }
  SECTION("a header alone") { CHECK(is_nothing(whole.substr(0, sizeof(message_header)))); }
  SECTION("a byte is missing") { CHECK(is_nothing(whole.substr(0, whole.size() - 1))); }
  SECTION("a message of another kind") {
    shard_message message = own_message();
    message.header.kind = message_kind::ended;
    CHECK(is_nothing(bytes_of(message)));
  }
  CHECK(test::count_of("/proc/self/fd") == before);
}

TEST_CASE("a shard that cannot be served here is refused, and its descriptors are closed",
          "[sharing]") {
  const auto before = test::count_of("/proc/self/fd");
  shard_message message = own_message();
  SECTION("of another version, which may be shorter") {
    message.header.version = 2;
    CHECK(reason_of(received(bytes_of(message).substr(0, sizeof(message_header)))) ==
          "kclxx-share has version 2 of the hand-over, and the program has version 1");
  }
  SECTION("of another daemon") {
    ++message.daemon.start;
    CHECK(reason_of(received(bytes_of(message))) == "it serves another daemon");
  }
  SECTION("with no, too few or too many descriptors") {
    const std::vector<int> fds(GENERATE(0U, 2U, 4U), 0);
    CHECK(reason_of(received(bytes_of(message), fds)) ==
          "it has no room for three more descriptors (ulimit -n)");
  }
  CHECK(test::count_of("/proc/self/fd") == before);
}

TEST_CASE("what comes with a packet and is no descriptor is not taken for one", "[sharing]") {
  // As descriptors the credentials would be those of the numbers 0, for root.
  CHECK(test::in_forked_copy([] {
          const socket_pair sockets;
          const int on = 1;
          ::setsockopt(sockets.ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
          send_packet(sockets.ends[0], bytes_of(own_message()), {});
          return std::holds_alternative<refusal>(receive_shard(sockets.ends[1], daemon)) ? 0 : 1;
        }).status == 0);
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
