// SPDX-License-Identifier: Apache-2.0
// What happens in a session, as values, and the interface that receives them.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <kclxx/detail/export.hpp>
#include <kclxx/exit_status.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// Receives what happens: derive from it, and put it into run_options::observers.
///
/// The dialogue does not wait for observers, and their exceptions do not reach it. Under `run` and
/// `serve` events are delivered within 0.1 s, on a thread of the session, without a lock held.
/// While an observer blocks, no metrics are written, and up to 65,536 events wait. Further ones are
/// dropped and counted: see events_dropped. At the end of the session the waiting events are
/// delivered, for at most 0.2 s. The test kit calls observers on a thread of its own, in virtual
/// time.
///
/// Errors: the first exception of an observer in a session is logged; later ones are ignored.
/// Thread safety: one session makes one call at a time, in the order of the events. An observer of
/// several sessions (see `serve`) is called by them at the same time.
/// Lifetime: the references are valid during the call. Sessions share ownership of the observer.
/// Blocking: it may block.
class KCLXX_EXPORT observer {
 public:
  // The dialogue with the daemon. Every session sends these.

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
      /// Another worker has the lease, which became known at leaseLost or shardEnded.
      lost,
      /// The end of the shard is persisted.
      shard_finished,
    };
    /// How the lease ended.
    reason why;
    bool operator==(const lease_ended&) const = default;
  };

  /// A batch is handed over to process_records. Empty ones count, too.
  struct batch_delivered {
    /// How many records the batch has.
    std::size_t records = 0;
    /// The size of the records' data, after decoding base64.
    std::uint64_t bytes = 0;
    /// The positions of the first and the last record; std::nullopt for an empty batch.
    std::optional<sequence_position> first{};
    /// The position of the last record; std::nullopt for an empty batch.
    std::optional<sequence_position> last{};
    /// How far the reader was behind the shard's tip, and when the last record reached the stream;
    /// std::nullopt when the daemon did not send it.
    std::optional<std::chrono::milliseconds> millis_behind_latest{};
    /// When the last record reached the stream; std::nullopt when the daemon did not send it.
    std::optional<std::chrono::system_clock::time_point> last_arrival{};
    bool operator==(const batch_delivered&) const = default;
  };

  /// Records may have left the stream before the worker came: see run_options::retention. Sent
  /// once, before the first batch with records.
  struct gap_suspected {
    sequence_position start_position;
    /// The arrival of the record at start_position, to the second, and that of the first record
    /// delivered. Records that arrived between the two may be lost.
    std::chrono::system_clock::time_point stored_arrival;
    std::chrono::system_clock::time_point first_arrival;
    /// How long before the worker got the lease the record at start_position arrived.
    std::chrono::milliseconds stored_age;
    std::chrono::milliseconds retention;
    /// run_options::retention is not set, so `retention` is Kinesis' default.
    bool is_retention_assumed = false;
    bool operator==(const gap_suspected&) const = default;
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
      /// The session ends: with exit_status::callback_failed, unless it was ending already.
      threw,
      /// It threw a fenced_error or a checkpoint_error of a lost lease. Once the lease is gone, any
      /// exception has this outcome, unless lease_lost throws it. The session continues. But if
      /// shard_ended threw before the daemon reported the loss, the session ends with
      /// exit_status::shard_end_failed.
      lease_gone,
    };
    /// Which callback it is.
    callback_kind callback;
    /// By the shard's clock: with the test kit, virtual time.
    std::chrono::nanoseconds duration;
    /// How it ended.
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
    /// The position that was asked for; SHARD_END for the end of the shard.
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

  // Single records. `each`, `batches` and `parallel` (kclxx/processing.hpp) send these.

  /// A handler was called for a record, or for a part of a batch, and ended. `position` is that of
  /// the first or only record.
  struct record_attempted {
    /// The result; with an async_record_handler, what its completion reported.
    enum class outcome { succeeded, failed };
    /// The position of the first or only record.
    sequence_position position;
    /// From 1 on.
    int attempt = 1;
    /// How long the handler took, by the shard's clock, which is virtual in the test kit.
    std::chrono::nanoseconds duration;
    /// How the attempt ended.
    outcome how = outcome::succeeded;
    /// What it threw; empty when it succeeded.
    std::string error{};
    bool operator==(const record_attempted&) const = default;
  };

  /// A failed record will be tried again.
  struct record_retried {
    /// The position of the failed record.
    sequence_position position;
    /// The number of the attempt to come, from 2 on.
    int attempt = 2;
    /// The wait before that attempt. The attempt can begin later, when other records are being
    /// processed.
    std::chrono::milliseconds delay;
    std::string error{};  ///< why the last one failed
    bool operator==(const record_retried&) const = default;
  };

  /// A record is stored for later and counts as complete.
  struct record_parked {
    /// The position of the parked record.
    sequence_position position;
    int attempts = 1;     ///< those that failed
    std::string error{};  ///< why the last one failed
    bool operator==(const record_parked&) const = default;
  };

  /// A record is left out, as the policy demands, and counts as complete.
  struct record_skipped {
    /// The position of the skipped record.
    sequence_position position;
    int attempts = 1;     ///< those that failed
    std::string error{};  ///< why the last one failed
    bool operator==(const record_skipped&) const = default;
  };

  /// The circuit of the shard opened or closed; see circuit_breaker.
  struct circuit_changed {
    /// Whether it opened.
    bool is_open = false;
    std::int64_t failures = 0;  ///< in a row, until now; see circuit_breaker
    std::string error{};        ///< of the last failure; empty when the circuit closed
    bool operator==(const circuit_changed&) const = default;
  };

  /// How many records are delivered and not complete. `parallel` sends it when its window becomes
  /// full or empty, and otherwise about once a second while the window changes; `batches` with a
  /// linger sends it when records are gathered and when they are handed over.
  struct window_changed {
    /// How many records are delivered and not complete.
    std::size_t records = 0;
    /// The size of their data, after decoding base64.
    std::uint64_t bytes = 0;
    /// When the oldest of them was delivered, by the shard's clock; std::nullopt without records.
    std::optional<std::chrono::steady_clock::time_point> oldest{};
    /// Everything up to here is complete; std::nullopt until the first record is complete.
    std::optional<sequence_position> watermark{};
    bool operator==(const window_changed&) const = default;
  };

  /// A handler runs for longer than parallel_options::stuck_after. Sent with each report of such a
  /// handler: after stuck_after, and then each time that the handler's time has doubled. Sent
  /// without a position each time that fewer handlers are stuck.
  struct handlers_stuck {
    std::size_t handlers = 0;  ///< that are stuck now
    /// The position of the reported handler's record; std::nullopt when fewer are stuck. key and
    /// attempt are that record's, too.
    std::optional<sequence_position> position{};
    /// The key of the reported handler's record; empty when there is none.
    std::string partition_key{};
    /// Which attempt the reported handler is, from 1 on.
    int attempt = 1;
    /// Since the reported handler began.
    std::chrono::milliseconds age{0};
    /// Since the oldest of the stuck handlers began; 0 if none is stuck.
    std::chrono::milliseconds oldest_age{0};
    bool operator==(const handlers_stuck&) const = default;
  };

  /// Events were dropped before this event, since an observer of the session was too slow.
  struct events_dropped {
    /// How many events were dropped.
    std::uint64_t count = 0;
    bool operator==(const events_dropped&) const = default;
  };

  /// The shard that an event belongs to: the names that shard_context has.
  struct shard_names {
    std::string shard_id{};  ///< empty before initialize
    /// As shard_context::stream_name.
    std::optional<std::string> stream_name{};
    /// As shard_context::application_name.
    std::optional<std::string> application_name{};
    /// As shard_context::worker_id.
    std::optional<std::string> worker_id{};
    bool operator==(const shard_names&) const = default;
  };

  /// Where and when an event happened.
  /// Lifetime: a copy may outlive the session.
  struct event_source {
    /// Never null. The same object for all events from lease_gained on.
    std::shared_ptr<const shard_names> shard;
    /// By the shard's clock (shard_context::now): virtual time in the test kit.
    std::chrono::steady_clock::time_point time;
    /// `time` as a date. In the test kit it moves with the virtual clock.
    std::chrono::system_clock::time_point date;
  };

  /// One event: take what matters with std::visit or std::get_if.
  using shard_event =
      std::variant<lease_gained, lease_ended, batch_delivered, callback_ended, checkpoint_requested,
                   checkpoint_answered, session_ended, record_attempted, record_retried,
                   record_parked, record_skipped, circuit_changed, window_changed, handlers_stuck,
                   events_dropped, gap_suspected>;

  observer() = default;
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  virtual ~observer();

  /// Receives every event.
  virtual void on_event(const event_source& source, const shard_event& event) = 0;
};

}  // namespace kclxx
