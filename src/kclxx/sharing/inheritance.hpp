// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/file.h>

#include "io/descriptor.hpp"
#include "io/process_identity.hpp"

namespace kclxx::sharing {

// The messages between kclxx-share and a resident.

/// Grows with each change of a struct below, or of its meaning. Different versions do not share.
constexpr std::uint32_t hand_over_version = 1;

/// The variable that makes a program a resident: "PID SOCKET_INODE DAEMON_PID DAEMON_START NAME".
/// PID is the resident's own, so that a program which the resident starts ignores the variable.
constexpr char resident_variable[] = "KCLXX_RESIDENT";
/// Variables whose names begin so belong to a shard, and travel with it.
constexpr char shard_variables[] = "KCLXX_";

/// The descriptors that a resident is started with.
constexpr int listening_descriptor = 3;   // where launchers connect
constexpr int connection_descriptor = 4;  // to the launcher that started it
constexpr int folder_descriptor = 5;      // with the socket's file, called NAME

enum class message_kind : std::uint32_t {
  shard = 1,  // a launcher's; with the descriptors 0, 1 and 2 of the shard
  accepted,   // the resident's: it has the shard from now on
  refused,    // the resident's: it has touched nothing
  ended,      // the resident's: it has closed all descriptors of the shard
};

/// A message is a packet of a SOCK_SEQPACKET socket. These members come first in every version.
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

/// The further kinds of messages.
struct reply_message {
  message_header header{};
  std::int32_t status = 0;  // with ended: the exit status of the launcher
  char reason[236] = {};    // with refused: people read it; ends with a zero
};

/// Holds the lock of the folder where launchers and residents meet, as long as it lives. Needs no
/// C++ runtime.
class folder_lock {
 public:
  static constexpr std::chrono::milliseconds default_limit{3'000};

  /// Waits until the lock is free, at most for `limit`, since its holder may be suspended.
  /// Errors: errno, when is_held() is false.
  explicit folder_lock(int folder, std::chrono::milliseconds limit = default_limit)
      // The folder is opened anew, so that a program that inherits the folder does not share the
      // lock.
      : folder_(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr timespec pause{0, 2'000'000};
    const double end = now() + std::chrono::duration<double>(limit).count();
    while (folder_.is_open()) {
      is_held_ = ::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0;
      if (is_held_ || (errno != EWOULDBLOCK && errno != EINTR)) return;
      errno = EWOULDBLOCK;
      if (now() >= end) return;
      ::nanosleep(&pause, nullptr);
    }
  }

  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  static double now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }

  io::descriptor folder_;
  bool is_held_ = false;
};

/// The descriptors and values that the launcher has left to the process that it started: see above.
struct inheritance {
  io::descriptor listening;
  io::descriptor connection;
  io::descriptor folder;
  std::string socket_name;
  std::uint64_t socket_inode = 0;
  io::process_identity daemon;
};

/// std::nullopt: the process was not started as a resident. Call it once.
/// Errors: std::runtime_error when the descriptors are not the launcher's; then none is touched.
std::optional<inheritance> inherited();

/// Removes the socket's file, unless a further resident has replaced it, or the folder's lock
/// cannot be had within `limit`.
void remove_socket(const inheritance& start,
                   std::chrono::milliseconds limit = folder_lock::default_limit) noexcept;

}  // namespace kclxx::sharing
