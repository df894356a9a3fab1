// SPDX-License-Identifier: Apache-2.0
// Sends packets as a launcher of kclxx-share does.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <vector>

#include "sharing/inheritance.hpp"
#include "support/catch.hpp"

namespace kclxx::test {

inline std::string bytes_of(const sharing::shard_message& message) {
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

/// Sends these bytes, with these descriptors. False: the other side has closed the connection.
inline bool try_to_send_packet(int target, std::string bytes, const std::vector<int>& fds) {
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  return ::sendmsg(target, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

inline void send_packet(int target, const std::string& bytes, const std::vector<int>& fds) {
  REQUIRE(try_to_send_packet(target, bytes, fds));
}

}  // namespace kclxx::test
