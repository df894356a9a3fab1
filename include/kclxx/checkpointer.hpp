// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract, and for when an action of the daemon is open.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <kclxx/detail/export.hpp>
#include <kclxx/detail/shard_service.hpp>
#include <kclxx/error.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// Which records a checkpoint covers: all of the shard up to and including this position.
class checkpoint_target {
 public:
  /// In a callback: all records delivered. On any further thread: the records whose callback has
  /// returned.
  checkpoint_target() noexcept = default;
  /// All records up to this position, which need not be that of a record.
  checkpoint_target(const sequence_position& position)  // NOLINT(google-explicit-constructor)
      : position_(position) {}
  /// Errors: as record::position.
  checkpoint_target(const record& last)  // NOLINT(google-explicit-constructor)
      : position_(last.position()) {}
  /// The batch's last record; for an empty batch TRIM_HORIZON, which covers nothing.
  /// Errors: as record::position.
  checkpoint_target(const record_batch& batch) {  // NOLINT(google-explicit-constructor)
    position_ = batch.empty() ? sequence_position("TRIM_HORIZON") : batch.back().position();
  }

  /// std::nullopt: everything.
  [[nodiscard]] const std::optional<sequence_position>& position() const noexcept {
    return position_;
  }

 private:
  std::optional<sequence_position> position_;
};

/// Persists how far a shard was processed. After a restart, or on another worker, the records
/// after the last checkpoint are delivered.
///
/// 1. With checkpoint_mode::automatic (the default) no call is needed: the library checkpoints
///    complete batches, at most once per run_options::checkpoint_interval.
/// 2. With checkpoint_mode::manual, call `async_checkpoint` (does not wait) or `checkpoint`
///    (waits) once records are processed. That makes them complete.
///
/// A handle: copies are cheap and equivalent, and one may outlive the shard (then every call fails
/// with errc::daemon_gone). While the worker has the lease, a checkpoint of a position that is
/// already persisted succeeds at once. checkpoint and checkpoint_until fail with
/// errc::not_allowed_here in a timer.
/// Errors: those named below, and as shard_context.
/// Thread safety: any thread may call all functions; in the test kit only its threads may.
class KCLXX_EXPORT checkpointer {
 public:
  /// The clock of deadlines, as of shard_context::now().
  using clock = detail::shard_service::clock;

  /// Persists the target and waits for the daemon's answer. Called in shard_ended without a target,
  /// it finishes the shard; otherwise the library does so when shard_ended returns.
  ///
  /// Retryable errors are retried according to run_options::retry. Calls that wait at the same
  /// time share one message to the daemon.
  /// Errors: checkpoint_error, or `ec`.
  /// Blocking: until the daemon answers. It answers only while an action is open: on an idle shard
  /// a call on another thread can wait for hours. Use checkpoint_until or async_checkpoint there.
  void checkpoint(const checkpoint_target& target = {}) const;
  /// As above, but reports an error in `ec`, which is empty after a success.
  void checkpoint(const checkpoint_target& target, std::error_code& ec) const;
  /// Persists the target as `checkpoint` does, but fails with errc::timed_out when `deadline`
  /// passes. The target then stays pending, as after async_checkpoint. The clock is that of
  /// shard_context::now().
  void checkpoint_until(const checkpoint_target& target, clock::time_point deadline) const;
  /// As above, but reports an error in `ec`, which is empty after a success.
  void checkpoint_until(const checkpoint_target& target, clock::time_point deadline,
                        std::error_code& ec) const;

  /// Persists the target without waiting. Requests are merged. The highest target is sent when the
  /// callback returns or has run for 5 ms, at most once per run_options::checkpoint_interval. In
  /// shard_ended the checkpoint of the last record is sent only after the return: do not wait for
  /// its handler. After a stop was requested, no further target is persisted.
  ///
  /// `handler`, unless it is empty, is called exactly once: with an empty error_code when the
  /// target or a later position is persisted, or with the reason why this process will never
  /// persist it. Until then retryable errors are retried.
  ///
  /// Handlers run one at a time on a thread of the session, perhaps while a callback runs: lock
  /// what both use. When the session is over, async_checkpoint itself calls the handler, with
  /// errc::daemon_gone. So call async_checkpoint without a lock that the handler takes. A handler
  /// should be short, and must not wait for a checkpoint.
  ///
  /// An exception from a handler is treated like one from a callback.
  /// Errors: a target that cannot be checkpointed is reported to the handler. Without a handler it
  /// is logged, unless the lease is gone or the session has ended. Errors that the daemon reports
  /// are always logged.
  void async_checkpoint(const checkpoint_target& target = {},
                        std::function<void(std::error_code)> handler = {}) const;

 private:
  friend struct detail::service_access;
  explicit checkpointer(std::shared_ptr<detail::shard_service> service) noexcept
      : service_(std::move(service)) {}
  std::shared_ptr<detail::shard_service> service_;
};

}  // namespace kclxx
