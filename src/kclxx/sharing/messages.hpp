// SPDX-License-Identifier: Apache-2.0
// What kclxx-share and a resident write to each other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/process_identity.hpp"

namespace kclxx::sharing {

/// Grows with each change of a struct below, or of what it means. What differs is not shared.
constexpr std::uint32_t hand_over_version = 1;

/// The variable that makes a program a resident: "PID SOCKET_INODE DAEMON_PID DAEMON_START NAME".
/// PID is the resident's own, so that a program which it starts does not take it for itself.
constexpr char resident_variable[] = "KCLXX_RESIDENT";
/// The variables that belong to a shard, and travel with it: those that begin so.
constexpr char shard_variables[] = "KCLXX_";

/// The descriptors that a resident is started with.
constexpr int listening_descriptor = 3;   // where launchers connect
constexpr int connection_descriptor = 4;  // to the launcher that started it
constexpr int folder_descriptor = 5;      // with the socket's file, called NAME

enum class message_kind : std::uint32_t {
  shard = 1,  // a launcher's; with the descriptors 0, 1 and 2 of the shard
  accepted,   // the resident's: the shard is its own from now on
  refused,    // the resident's: it has touched nothing
  ended,      // the resident's: nothing of the shard is open any more
};

/// A message is one packet of a SOCK_SEQPACKET socket. These stay first in every version.
struct message_header {
  char magic[8] = {'k', 'c', 'l', 'x', 'x', '-', 's', 'h'};
  std::uint32_t version = hand_over_version;
  message_kind kind = message_kind::shard;
};

/// message_kind::shard. After it in the packet: the variables, each as NAME=value and a zero.
struct shard_message {
  message_header header{};
  io::process_identity daemon{};
};
constexpr std::size_t max_variables = std::size_t{32} * 1024;

/// The others.
struct reply_message {
  message_header header{};
  std::int32_t status = 0;  // ended: for the launcher to leave with
  char reason[236] = {};    // refused: for people; ends with a zero
};

}  // namespace kclxx::sharing
