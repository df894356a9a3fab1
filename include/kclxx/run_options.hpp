// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <kclxx/log.hpp>

namespace kclxx {

class observer;

/// Who decides which records may be checkpointed.
enum class checkpoint_mode {
  /// The library: the records of every batch that process_records returned from are complete.
  automatic,
  /// The processor, with checkpointer::checkpoint or async_checkpoint: for records that are
  /// complete only after process_records has returned.
  manual,
};

/// How checkpoints that failed with a retryable error are retried: after `initial_backoff`, then
/// twice as long each time, with jitter, up to `max_backoff`.
struct retry_options {
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{5000};
  /// Attempts of one checkpoint() that waits, the first included. With the values above: about
  /// 11 to 21 s. An async_checkpoint stays pending instead, and is retried as long as the shard is
  /// read.
  int max_attempts = 10;
};

/// How `run` behaves. With the defaults no record is skipped; some may be delivered twice. A
/// duration below zero counts as zero, and one above ten years as ten years.
/// Thread safety: a value; `run` and `serve` copy it.
struct run_options {
  // What is persisted, and when.
  checkpoint_mode mode = checkpoint_mode::automatic;
  /// The least time between two checkpoints that no call waits for: those that the library makes in
  /// automatic mode, and those of async_checkpoint. Each costs the daemon a write to its lease
  /// table. They are sent only while a callback is open, so what is complete before an idle time
  /// stays unpersisted until the daemon's next call; callProcessRecordsEvenForEmptyRecordList in
  /// the daemon's properties makes it call regularly. 0: with every batch.
  std::chrono::milliseconds checkpoint_interval{5000};
  retry_options retry{};
  /// Retries in shutdown_requested end this long after the daemon's message arrived, the callback's
  /// time included. Keep it below the daemon's shutdownGraceMillis and
  /// gracefulLeaseHandoffTimeoutMillis (30 s).
  std::chrono::milliseconds shutdown_retry_limit{10000};

  // What is accepted.
  /// The longest line from the daemon, in bytes. A batch is one line: 14 MB as read from Kinesis,
  /// far more when the daemon took aggregated records apart.
  std::size_t max_line_length = std::size_t{1} << 30;

  // How the session ends.
  /// How long a callback may continue after the daemon is gone, and the processor's destructor
  /// after the end of the dialogue (at least half a second).
  std::chrono::milliseconds grace_time{10000};

  // Where messages go.
  /// Called with each message. Empty: each goes to stderr as a line. A session calls it on a thread
  /// of its own, one message at a time, in order; several sessions (see `serve`) call it at the
  /// same time. It should not throw: the message then goes to stderr.
  std::function<void(const log_entry&)> log{};

  // What is observed.
  /// Receive what happens. None: nothing is measured, and the cost is a null check.
  std::vector<std::shared_ptr<observer>> observers{};
};

}  // namespace kclxx
