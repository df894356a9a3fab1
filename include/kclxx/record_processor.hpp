// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include <kclxx/checkpointer.hpp>
#include <kclxx/export.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx {

/// The user's program: one object per shard, made by a processor_factory.
///
/// The order of calls: initialize; process_records any number of times; shutdown_requested at
/// most once (process_records does not follow it); then lease_lost or shard_ended, or neither.
/// The destructor runs last.
///
/// An exception that leaves a callback ends the process with exit_status::callback_failed and is
/// never reported to the daemon as success. The daemon then ends the whole worker: catch what
/// can be handled.
/// Thread safety: all callbacks run on the thread that called `run`, one at a time.
class KCLXX_EXPORT record_processor {
 public:
  virtual ~record_processor() = default;

  /// Called first. Nothing can be checkpointed yet.
  /// Lifetime: the context lives as long as the processor.
  virtual void initialize(const shard_context& context);

  /// Called with the next records. Printing is safe: fd 1 leads to stderr, not to the daemon.
  /// With enhanced fan-out a call that takes longer than 30 s makes the daemon resubscribe.
  virtual void process_records(record_batch batch, checkpointer& checkpointer) = 0;

  /// The lease is gone: another worker processes the shard. Nothing can be checkpointed.
  virtual void lease_lost();

  /// All records of the shard, which was split or merged, were delivered. When this returns, the
  /// library checkpoints the shard's end, and its children are read: return only when all work
  /// is done. `checkpointer.checkpoint()` and `checkpoint(last position)` in here can finish the
  /// shard at once, before this returns.
  virtual void shard_ended(checkpointer& checkpointer);

  /// The worker is to stop or hands the lease on: the last chance to checkpoint. When this
  /// returns, what is complete is checkpointed, awaited.
  virtual void shutdown_requested(checkpointer& checkpointer);
};

/// Makes the processor of a shard; called once per shard, on the thread of its callbacks.
using processor_factory = std::function<std::unique_ptr<record_processor>()>;

}  // namespace kclxx
