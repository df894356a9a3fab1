// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <variant>
#include <vector>

#include "io/descriptor.hpp"
#include "io/process_identity.hpp"

namespace kclxx::sharing {

/// A shard that a launcher has handed over: the descriptors 0, 1 and 2 that the daemon gave it, and
/// its variables, each as NAME=value.
struct handed_shard {
  io::descriptor input;
  io::descriptor output;
  io::descriptor error;
  std::vector<std::string> variables;
  io::process_identity daemon{};

  /// std::nullopt: it is not set, or empty.
  [[nodiscard]] std::optional<std::string> variable(std::string_view name) const;
};

/// Why a shard is not accepted: for people.
struct refusal {
  std::string reason;
};

/// The launcher is gone, or was never one.
struct nothing {};

/// What a launcher sent. `daemon` is the one of this resident. Does not wait.
std::variant<handed_shard, refusal, nothing> receive_shard(int connection,
                                                           const io::process_identity& daemon);

/// The user of the process at the other side. Errors: std::nullopt.
std::optional<uid_t> user_of_peer(int connection) noexcept;

/// False: the launcher is gone. None of them waits.
bool send_accepted(int connection) noexcept;
bool send_refused(int connection, std::string_view reason) noexcept;
bool send_ended(int connection, int status) noexcept;

/// A descriptor that has come from elsewhere, with a number above 2: process_output would replace
/// one that got a number which user code has closed. Not open: there is no other number.
[[nodiscard]] io::descriptor above_standard(io::descriptor&& fd) noexcept;

/// Where the descriptors 1 and 2 of the process lead to, hence what user code prints: to the stderr
/// of the oldest shard that is served, and to /dev/null while there is none. A shard that has ended
/// must not be held open: its daemon waits for that (P31). stdout is never flushed, since a pipe
/// may be full.
///
/// Thread safety: none.
class process_output {
 public:
  /// From now on that of the launcher that started the process, until a shard is there, or
  /// no_shard_comes(). stdout is line-buffered, so that prints are seen in time.
  /// Errors: std::exception.
  process_output();

  /// Errors: std::bad_alloc.
  void add(int error_of_shard);
  void remove(int error_of_shard) noexcept;
  /// The launcher that started the process is gone without its shard.
  void no_shard_comes() noexcept;

 private:
  void lead() const noexcept;

  io::descriptor null_;
  std::vector<int> errors_;  // the oldest first
};

}  // namespace kclxx::sharing
