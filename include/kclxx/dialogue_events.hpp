// SPDX-License-Identifier: Apache-2.0
// What happens in the dialogue with the daemon, as values. Every session sends these.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <kclxx/exit_status.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// The worker has the shard's lease: the daemon sent initialize.
struct lease_gained {
  /// Where reading begins; std::nullopt when the daemon did not send it.
  std::optional<sequence_position> start_position{};
  bool operator==(const lease_gained&) const = default;
};

/// The worker no longer has the lease. This event is not sent when only the child exits: see
/// session_ended.
struct lease_ended {
  /// How the lease ended.
  enum class reason {
    /// leaseLost: another worker processes the shard.
    lost,
    /// The end of the shard is persisted.
    shard_finished,
  };
  reason why;
  bool operator==(const lease_ended&) const = default;
};

/// A batch is handed over to process_records. Empty ones count, too.
struct batch_delivered {
  std::size_t records = 0;
  /// Of the records' data, after decoding base64.
  std::uint64_t bytes = 0;
  /// Of the first and the last record; std::nullopt for an empty batch.
  std::optional<sequence_position> first{};
  std::optional<sequence_position> last{};
  /// How far the reader was behind the shard's tip, and when the last record reached the stream;
  /// std::nullopt when the daemon did not send it.
  std::optional<std::chrono::milliseconds> millis_behind_latest{};
  std::optional<std::chrono::system_clock::time_point> last_arrival{};
  bool operator==(const batch_delivered&) const = default;
};

/// The functions of record_processor.
enum class callback_kind {
  initialize,
  process_records,
  lease_lost,
  shard_ended,
  shutdown_requested,
};

/// A callback of the processor has ended.
struct callback_ended {
  /// How it ended, and what follows.
  enum class outcome {
    returned,
    threw,  ///< the session ends with exit_status::callback_failed
    /// It threw a fenced_error, or a checkpoint_error of a lost lease: the session continues. In
    /// shard_ended it ends with exit_status::shard_end_failed, unless the daemon has reported the
    /// loss.
    lease_gone,
  };
  callback_kind callback;
  /// By the shard's clock: with the test kit, virtual time.
  std::chrono::nanoseconds duration;
  outcome how = outcome::returned;
  /// What it threw, as it is logged; empty when it returned.
  std::string error{};
  bool operator==(const callback_ended&) const = default;
};

/// A checkpoint is written to the daemon. Retries of a failed one are requests of their own.
struct checkpoint_requested {
  /// SHARD_END for the end of the shard.
  sequence_position position;
  bool operator==(const checkpoint_requested&) const = default;
};

/// The daemon has answered a checkpoint, or will not answer it any more.
struct checkpoint_answered {
  sequence_position position;
  /// From the request on, by the shard's clock.
  std::chrono::nanoseconds duration;
  /// The daemon's name for the error, "ThrottlingException" for instance; empty when the
  /// position was persisted. "not answered" when the daemon continued, or was gone, without an
  /// answer.
  std::string error{};
  bool operator==(const checkpoint_answered&) const = default;
};

/// The session is over. Events of handlers that were still running may follow.
struct session_ended {
  /// What the process exits with, or `serve` returns.
  exit_status status;
  bool operator==(const session_ended&) const = default;
};

}  // namespace kclxx
