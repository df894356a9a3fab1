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

/// A shard that a launcher has handed over: the descriptors 0, 1 and 2 that the daemon gave to the
/// launcher, and the shard's variables, each as NAME=value.
struct handed_shard {
  io::descriptor input;
  io::descriptor output;
  io::descriptor error;
  std::vector<std::string> variables;
  io::process_identity daemon{};

  /// The variable's value; std::nullopt when it is not set, or empty.
  [[nodiscard]] std::optional<std::string> variable(std::string_view name) const;
};

/// Why a shard is not accepted; people read it.
struct refusal {
  std::string reason;
};

/// The launcher is gone, or the peer was no launcher.
struct nothing {};

/// Receives a shard from a launcher. `daemon` is this resident's. Does not wait.
std::variant<handed_shard, refusal, nothing> receive_shard(int connection,
                                                           const io::process_identity& daemon);

/// The user of the connected process. Errors: std::nullopt.
std::optional<uid_t> user_of_peer(int connection) noexcept;

// Replies to a launcher. They return false when the launcher is gone, and do not wait.
bool send_accepted(int connection) noexcept;
bool send_refused(int connection, std::string_view reason) noexcept;
bool send_ended(int connection, int status) noexcept;

/// The descriptor with a number above 2. When user code has closed a standard descriptor, a
/// received descriptor may get its number, and process_output would replace it. Not open when there
/// is no further number.
[[nodiscard]] io::descriptor above_standard(io::descriptor&& fd) noexcept;

/// Leads the descriptors 1 and 2 of the process, to which user code prints, to the stderr of the
/// oldest shard that is served, and to /dev/null while no shard is served. The stderr of a shard
/// that has ended must not stay open: its daemon waits for the end of that pipe (P31). stdout is
/// never flushed, since a pipe may be full.
///
/// Thread safety: none; belongs to the loop.
class process_output {
 public:
  /// Leaves the descriptors to the launcher that started the process, until a shard is added, or
  /// no_shard_comes(). Makes stdout line-buffered, so that prints are seen in time.
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
  std::vector<int> errors_;  // the stderr of each shard, the oldest first
};

}  // namespace kclxx::sharing
