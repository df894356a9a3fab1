// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <kclxx/checkpointer.hpp>
#include <kclxx/detail/export.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx {

/// It says who decides which records may be checkpointed.
enum class checkpoint_mode {
  /// The library: a batch's records are complete when process_records has returned.
  automatic,
  /// The processor, with checkpointer::checkpoint or async_checkpoint: for records whose
  /// processing ends only after process_records has returned.
  manual,
};

/// The user's program: one object per shard, made by a processor_factory.
///
/// The order of calls: the constructor, in which nothing can be checkpointed yet; mode, once;
/// process_records any number of times; then shutdown_requested at most once; then lease_lost
/// or shard_ended, or neither. The destructor runs last. The functions that are not pure have a
/// default: automatic, or to do nothing.
/// Errors: an exception that leaves one of these functions ends the session with
/// exit_status::callback_failed. The daemon then ends the whole worker, with all its shards: catch
/// what can be handled. After a fenced_error, or a checkpoint_error of a lost lease, the session
/// continues, but calls no callback except lease_lost (docs/exactly-once.md). Do not throw these
/// errors for other reasons. Once the lease is gone, any exception is treated so, except one from
/// lease_lost.
/// Thread safety: callbacks run one at a time on one thread: run's caller, or one of the session.
/// Blocking: a callback may block. The daemon waits, and the shard with it.
class KCLXX_EXPORT record_processor {
 public:
  virtual ~record_processor() = default;
  record_processor(const record_processor&) = delete;
  record_processor& operator=(const record_processor&) = delete;

  /// Says who decides which of this processor's records may be checkpointed. Called once, right
  /// after the constructor. `each`, `batches` and `parallel` decide it themselves: a processor that
  /// calls the functions of theirs is in manual mode, whatever it returns here.
  [[nodiscard]] virtual checkpoint_mode mode() const;

  /// Processes the next records. With checkpoint_mode::automatic they are complete when it returns.
  /// Printing is safe: under `run` fd 1 leads to stderr, not to the daemon.
  virtual void process_records(record_batch batch, const checkpointer& checkpointer) = 0;

  /// The lease is gone: another worker processes the shard. Nothing can be checkpointed.
  virtual void lease_lost();

  /// Called after the last record of a shard that was split or merged. When it returns, the library
  /// checkpoints the shard's end; the daemon then reads the child shards. In manual mode the
  /// library first waits for a request to checkpoint the last record.
  virtual void shard_ended(const checkpointer& checkpointer);

  /// The worker is about to stop, or to hand over the lease: the last chance to checkpoint. When
  /// this returns, the library checkpoints what is complete, and waits for the answer.
  virtual void shutdown_requested(const checkpointer& checkpointer);

 protected:
  record_processor() = default;
};

}  // namespace kclxx
