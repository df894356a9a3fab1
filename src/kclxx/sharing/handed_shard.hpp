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

}  // namespace kclxx::sharing
