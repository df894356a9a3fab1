// SPDX-License-Identifier: Apache-2.0
// What happens in a session, as values: an event, and which shard it belongs to.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <kclxx/dialogue_events.hpp>    // IWYU pragma: export
#include <kclxx/processing_events.hpp>  // IWYU pragma: export

namespace kclxx {

/// The shard that an event belongs to: the names that shard_context has.
struct shard_names {
  std::string shard_id{};  ///< empty before initialize
  std::optional<std::string> stream_name{};
  std::optional<std::string> application_name{};
  std::optional<std::string> worker_id{};
  bool operator==(const shard_names&) const = default;
};

/// Where and when an event happened.
/// Thread safety: a value. Copies share the names, which are constant.
/// Lifetime: a copy may outlive the session.
struct event_source {
  /// Never null. The same object for all events from lease_gained on.
  std::shared_ptr<const shard_names> shard;
  /// By the shard's clock (shard_context::now): virtual time in the test kit.
  std::chrono::steady_clock::time_point time;
  /// The same moment as a date. In the test kit it moves with the virtual clock.
  std::chrono::system_clock::time_point date;
};

/// One event. `observer` has a function for each alternative, in this order.
using shard_event =
    std::variant<lease_gained, lease_ended, batch_delivered, callback_ended, checkpoint_requested,
                 checkpoint_answered, session_ended, record_attempted, record_retried,
                 record_parked, record_skipped, circuit_changed, window_changed, handlers_stuck>;

}  // namespace kclxx
