// SPDX-License-Identifier: Apache-2.0
// What happens in a session, as values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <kclxx/exit_status.hpp>
#include <kclxx/sequence_position.hpp>

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
struct event_source {
  std::shared_ptr<const shard_names> shard;  ///< never null
  /// By the shard's clock (shard_context::now): virtual time in the test kit.
  std::chrono::steady_clock::time_point time;
  /// The same moment as a date. In the test kit it moves with the virtual clock.
  std::chrono::system_clock::time_point date;
};

// --- The dialogue with the daemon. Every session sends these. ---

/// The worker has the shard's lease: the daemon sent initialize.
struct lease_gained {
  std::optional<sequence_position> start_position{};
  bool operator==(const lease_gained&) const = default;
};

/// The worker has it no longer. A child that only exits keeps the lease: see session_ended.
struct lease_ended {
  enum class reason {
    lost,            ///< leaseLost: another worker processes the shard
    shard_finished,  ///< the end of the shard is persisted
  };
  reason why;
  bool operator==(const lease_ended&) const = default;
};

/// A batch is handed over to process_records. Empty ones count, too.
struct batch_delivered {
  std::size_t records = 0;
  std::uint64_t bytes = 0;  ///< of the records' data, after decoding base64
  std::optional<sequence_position> first{};
  std::optional<sequence_position> last{};
  /// How far the reader was behind the shard's tip, and when the last record reached the stream.
  std::optional<std::chrono::milliseconds> behind_latest{};
  std::optional<std::chrono::system_clock::time_point> last_arrival{};
  bool operator==(const batch_delivered&) const = default;
};

enum class callback_kind {
  initialize,
  process_records,
  lease_lost,
  shard_ended,
  shutdown_requested,
};

/// A callback of the processor has ended.
struct callback_ended {
  enum class outcome {
    returned,
    threw,       ///< the session ends with exit_status::callback_failed
    lease_gone,  ///< threw a fenced_error, or checkpoint_error of a lost lease: the session
                 ///< continues
  };
  callback_kind callback;
  std::chrono::nanoseconds duration;
  outcome how = outcome::returned;
  std::string error{};  ///< what it threw, as it is logged
  bool operator==(const callback_ended&) const = default;
};

/// A checkpoint is written to the daemon. Retries of a failed one are requests of their own.
struct checkpoint_requested {
  /// SHARD_END for the end of the shard.
  sequence_position position;
  bool operator==(const checkpoint_requested&) const = default;
};

/// The daemon has answered it.
struct checkpoint_answered {
  sequence_position position;
  /// From the request on.
  std::chrono::nanoseconds duration;
  /// The daemon's name for the error, "ThrottlingException" for instance; empty when it is
  /// persisted. "not answered" when the daemon continued, or was gone, without an answer.
  std::string error{};
  bool operator==(const checkpoint_answered&) const = default;
};

/// The session is over. It is the last event.
struct session_ended {
  exit_status status;
  bool operator==(const session_ended&) const = default;
};

// --- What each record goes through: sent by what is in kclxx/processing. ---

/// A handler was called for a record (or for records together, at the first one's position), and
/// ended.
struct record_attempted {
  enum class outcome { succeeded, failed };
  sequence_position position;
  int attempt = 1;  ///< from 1 on
  std::chrono::nanoseconds duration;
  outcome how = outcome::succeeded;
  std::string error{};  ///< what it threw
  bool operator==(const record_attempted&) const = default;
};

/// A failed record will be tried again.
struct record_retried {
  sequence_position position;
  int attempt = 2;                  ///< the number of the attempt to come
  std::chrono::milliseconds delay;  ///< until then
  std::string error{};              ///< why the last one failed
  bool operator==(const record_retried&) const = default;
};

/// A record is stored for later and counts as complete.
struct record_parked {
  sequence_position position;
  int attempts = 1;
  std::string error{};
  bool operator==(const record_parked&) const = default;
};

/// A record is left out, as the policy demands, and counts as complete.
struct record_skipped {
  sequence_position position;
  int attempts = 1;
  std::string error{};
  bool operator==(const record_skipped&) const = default;
};

/// The records that are delivered and not complete. Sent when the window fills or empties, and in
/// between about once a second while it changes.
struct window_changed {
  std::size_t records = 0;
  std::uint64_t bytes = 0;
  /// When the oldest of them was delivered, by the shard's clock.
  std::optional<std::chrono::steady_clock::time_point> oldest{};
  /// Everything up to here is complete.
  std::optional<sequence_position> watermark{};
  bool operator==(const window_changed&) const = default;
};

/// Handlers run for longer than the limit. Sent when another handler exceeds it, and with
/// `handlers` = 0 when none does any more. The other fields describe the newest of them.
struct handlers_stuck {
  std::size_t handlers = 0;
  std::optional<sequence_position> position{};
  std::string partition_key{};
  int attempt = 1;
  std::chrono::milliseconds age{0};  ///< since the handler began
  std::string where{};               ///< the functions that its thread is in, if known
  bool operator==(const handlers_stuck&) const = default;
};

using shard_event =
    std::variant<lease_gained, lease_ended, batch_delivered, callback_ended, checkpoint_requested,
                 checkpoint_answered, session_ended, record_attempted, record_retried,
                 record_parked, record_skipped, window_changed, handlers_stuck>;

}  // namespace kclxx
