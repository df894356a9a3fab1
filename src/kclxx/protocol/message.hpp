// SPDX-License-Identifier: Apache-2.0
// What can come from the daemon, typed (docs/protocol.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <kclxx/observer.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::protocol {

struct initialize {
  std::string shard_id;
  std::optional<sequence_position> start_position;
};

/// The records themselves stand in the vector that decode() filled.
struct process_records {
  std::optional<std::chrono::milliseconds> millis_behind_latest;
  /// The highest position among the records; std::nullopt for an empty batch.
  std::optional<sequence_position> largest;
  /// The first time that no record can show, and so is unknown: "millisBehindLatest is 1e300".
  std::string unknown_time{};
};

/// leaseLost, and the older shutdown with ZOMBIE or LEASE_LOST.
struct lease_lost {};
/// shardEnded, and the older shutdown with TERMINATE or SHARD_END.
struct shard_ended {};
struct shutdown_requested {};

/// The answer to a checkpoint; `error` is the simple name of the daemon's exception.
struct checkpoint_answer {
  std::optional<std::string> error{};
  /// The checkpoint's position; std::nullopt for the null checkpoint.
  std::optional<sequence_position> position{};
};

/// Whether a `shutdown` with this reason, from an older daemon, ends the shard; if not, the lease
/// is lost. std::nullopt for an unknown reason.
inline std::optional<bool> is_shard_end(std::string_view shutdown_reason) noexcept {
  if (shutdown_reason == "TERMINATE" || shutdown_reason == "SHARD_END") return true;
  if (shutdown_reason == "ZOMBIE" || shutdown_reason == "LEASE_LOST") return false;
  return std::nullopt;
}

/// An action that this version does not know.
struct unknown_action {};

/// What the daemon can ask of the child. Each has a callback, and a status answers it.
using action_kind = observer::callback_kind;

inline constexpr const char* action_names[] = {"initialize", "processRecords", "leaseLost",
                                               "shardEnded", "shutdownRequested"};

/// The name on the wire; 1.x and 2.0 call the two endings "shutdown".
constexpr const char* action_name(action_kind kind) noexcept {
  return action_names[static_cast<std::size_t>(kind)];
}

/// std::nullopt for an answer, the older shutdown and an unknown action.
constexpr std::optional<action_kind> action_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::size(action_names); ++i) {
    if (name == action_names[i]) return static_cast<action_kind>(i);
  }
  return std::nullopt;
}

struct message {
  /// The action's name as it came: a status must repeat it ("leaseLost" or "shutdown").
  std::string action;
  /// The actions come first, in action_kind's order.
  std::variant<initialize, process_records, lease_lost, shard_ended, shutdown_requested,
               checkpoint_answer, unknown_action>
      body;

  /// std::nullopt for an answer and an unknown action.
  [[nodiscard]] std::optional<action_kind> kind() const noexcept {
    constexpr auto last = static_cast<std::size_t>(action_kind::shutdown_requested);
    if (body.index() > last) return std::nullopt;
    return static_cast<action_kind>(body.index());
  }
};

}  // namespace kclxx::protocol
