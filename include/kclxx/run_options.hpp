// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kclxx/log.hpp>

namespace kclxx {

class observer;

/// Who decides which records may be checkpointed.
enum class checkpoint_mode {
  /// The library: a batch's records are complete when process_records has returned.
  automatic,
  /// The processor, with checkpointer::checkpoint or async_checkpoint: for records whose
  /// processing ends only after process_records has returned.
  manual,
};

/// Whether one process may serve several shards: see docs/sharing.md.
enum class sharing_mode {
  allowed,  ///< with kclxx-share; the factory's functions then run on several threads
  never,    ///< kclxx-share executes the program for each shard
};

/// How checkpoints that failed with a retryable error are retried: after `initial_backoff`, then
/// twice as long each time, with jitter, up to `max_backoff`.
/// Thread safety: a value.
struct retry_options {
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{5000};
  /// Attempts of one checkpoint() that waits, the first included. With the values above: about
  /// 11 to 21 s. An async_checkpoint stays pending instead, and is retried as long as the shard is
  /// read.
  int max_attempts = 10;
};

/// The built-in outputs of metrics; docs/metrics.md lists these. All are off. The environment takes
/// precedence: KCLXX_METRICS_DIR, KCLXX_SUMMARY_SECONDS and KCLXX_CLOUDWATCH_SECONDS.
/// Thread safety: a value.
struct metrics_options {
  /// Where each shard has a Prometheus text file, `kclxx.APPLICATION.SHARD.prom`, for the textfile
  /// collector of node_exporter. It is removed when the lease ends or the exit status is 0; after a
  /// failure it stays. The directory must exist. Empty: no file.
  std::string directory{};
  std::chrono::milliseconds write_interval{15000};  ///< at least 1 ms
  /// False: the file stays at the end of the lease and at exit status 0, too.
  bool remove_at_end = true;
  /// How often a line with what has been done since the last one goes to the log. 0: never.
  std::chrono::milliseconds summary_interval{0};
  /// How often a line in CloudWatch's embedded metric format goes to stderr. 0: never.
  std::chrono::milliseconds cloudwatch_interval{0};
};

/// How `run` behaves. With the defaults no record is skipped; some may be delivered twice. A
/// duration below zero counts as zero, and one above ten years as ten years.
/// Thread safety: a value; `run` and `serve` copy it.
struct run_options {
  // What is persisted, and when.
  checkpoint_mode mode = checkpoint_mode::automatic;
  /// The least time between two checkpoints that are made automatically or with async_checkpoint.
  /// It does not apply in shutdown_requested, in shard_ended, after a failed callback, or to
  /// retries. Each costs the daemon a write to its lease table. They are sent only while a callback
  /// is open, so what is complete before an idle time stays unpersisted until the daemon's next
  /// call; callProcessRecordsEvenForEmptyRecordList in the daemon's properties makes it call
  /// regularly. 0: with every batch.
  std::chrono::milliseconds checkpoint_interval{5000};
  retry_options retry{};
  /// Retries in shutdown_requested end this long after the daemon's message arrived. The time that
  /// the callback takes counts. Keep it below the daemon's shutdownGraceMillis and
  /// gracefulLeaseHandoffTimeoutMillis (30 s).
  std::chrono::milliseconds shutdown_retry_limit{10000};

  // What is accepted.
  /// The longest line from the daemon, in bytes. A batch is one line: 14 MB as read from Kinesis,
  /// far more when the daemon took aggregated records apart.
  std::size_t max_line_length = std::size_t{1} << 30;

  // How the session ends.
  /// How long a callback may continue after the daemon is gone. The processor's destructor has
  /// the same limit, counted from the end of the dialogue; a limit below half a second counts as
  /// half a second. grace_time is not the daemon's shutdownGraceMillis.
  std::chrono::milliseconds grace_time{10000};

  /// For programs in which shards would disturb each other.
  sharing_mode sharing = sharing_mode::allowed;

  // Where messages go.
  /// Which messages are written, in which form, and where.
  log_options logging{};
  /// Called with each message of at least logging.level. Empty: a log_writer. A session calls it on
  /// a thread of its own, one message at a time, in order; several sessions (see `serve`) call it
  /// at the same time. If it throws, the message goes to the log_writer.
  std::function<void(const log_entry&)> log{};

  // What is observed.
  metrics_options metrics{};
  /// Get the session's events. Without one, and without metrics, nothing is measured.
  std::vector<std::shared_ptr<observer>> observers{};
};

}  // namespace kclxx
