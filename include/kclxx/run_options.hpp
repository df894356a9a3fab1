// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract, and for when an action of the daemon is open.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/log.hpp>
#include <kclxx/observer.hpp>

namespace kclxx {

/// How checkpoints that failed with a retryable error are retried: after `initial_backoff`, then
/// twice as long each time, with jitter, up to `max_backoff`. 0 counts as 1 ms.
struct retry_options {
  /// The wait after the first failure.
  std::chrono::milliseconds initial_backoff{100};
  /// The longest wait.
  std::chrono::milliseconds max_backoff{5000};
  /// The largest number of attempts of one waiting checkpoint(), the first included; below 1 counts
  /// as 1. With the values above, ten attempts take about 11 to 21 s. The checkpoint of the shard's
  /// end has the same limit. An async_checkpoint has no limit: it is retried as long as the shard
  /// is read.
  int max_attempts = 10;
};

/// A figure of the program's own for the Prometheus text file, which adds the labels application,
/// stream and shard.
struct own_metric {
  /// A counter only grows; a gauge goes up and down.
  enum class metric_type { counter, gauge };
  /// By Prometheus' rules: letters, digits, `_` and `:`, no digit first. It must not begin with
  /// `kclxx_`. Figures of one name have different labels; help and type are the first one's.
  std::string name;
  std::string help{};  ///< any text in UTF-8
  /// How its value changes.
  metric_type type = metric_type::gauge;
  /// Names are letters, digits and `_`, no digit first, no two `_` first. Values are any text in
  /// UTF-8; an empty one counts as no label.
  std::vector<std::pair<std::string, std::string>> labels{};
  /// The present value, in the unit that the name has.
  double value = 0;
};

/// The built-in outputs of metrics (docs/metrics.md), all off. The environment takes precedence:
/// KCLXX_METRICS_DIR and KCLXX_CLOUDWATCH_SECONDS.
struct metrics_options {
  /// The directory of the Prometheus text files, one for each shard, for the textfile collector of
  /// node_exporter. It must exist. Empty: no files.
  std::string directory{};
  std::chrono::milliseconds write_interval{15000};  ///< at least 1 ms
  /// The program's own figures. Called before each write of the file, on a thread of the session;
  /// several sessions call it at the same time. A function that throws adds nothing. A figure that
  /// Prometheus would not accept is left out. Each is logged once.
  std::function<std::vector<own_metric>(const observer::shard_names&)> own_metrics{};
  /// Whether the file is removed at the end of the lease and at exit status 0. After a failure it
  /// stays.
  bool remove_at_end = true;
  /// The interval of lines in CloudWatch's embedded metric format. They go to stderr; under `serve`
  /// they go to transport::log. 0: no lines.
  std::chrono::milliseconds cloudwatch_interval{0};
};

/// How `run` behaves. With the defaults no record is skipped; some may be delivered twice. A
/// duration below zero counts as zero, and one above ten years as ten years.
/// Thread safety: a value; `run` and `serve` copy it.
struct run_options {
  // What is persisted, and when.
  /// The least time between two checkpoints that are made automatically or with async_checkpoint.
  /// 0: with every batch. Each checkpoint costs the daemon a write to its lease table. The interval
  /// does not delay retries, nor checkpoints in shard_ended and those that follow
  /// shutdown_requested or a failed callback. A checkpoint is sent only while an action is open: on
  /// a shard that has become idle it waits for the daemon's next action.
  /// callProcessRecordsEvenForEmptyRecordList in the daemon's properties makes the daemon send one
  /// regularly.
  std::chrono::milliseconds checkpoint_interval{5000};
  /// How failed checkpoints are retried.
  retry_options retry{};
  /// How long the last checkpoint is retried after shutdown_requested has returned. Calls of
  /// checkpoint in that callback are retried for as long after the request. Keep it, with the time
  /// that the callback takes, below shutdownGraceMillis and gracefulLeaseHandoffTimeoutMillis (30
  /// s).
  std::chrono::milliseconds shutdown_retry_limit{10000};

  // What is accepted.
  /// The longest line from the daemon, in bytes; a longer one ends the session with protocol_error.
  /// A batch is one line: up to 14 MB as read from Kinesis, far more when the daemon took
  /// aggregated records apart.
  std::size_t max_line_length = std::size_t{1} << 30;
  /// How long the stream keeps records, its retention period. If the stored position is older when
  /// the worker gets the lease, records may have been lost. That is logged as an error, and sent as
  /// observer::gap_suspected, if the first record is about as old as the retention: nearer to it
  /// than to the age of the stored position, and to zero. A much younger one shows that the shard
  /// had no records for most of that time. std::nullopt: Kinesis' default is assumed, 24 hours.
  /// Then the stored position must be older than 25 hours and the first record 23 to 25 hours old,
  /// and the log has a warning. Never reported: a start at TRIM_HORIZON, LATEST or AT_TIMESTAMP,
  /// and sequence numbers that encode no time.
  std::optional<std::chrono::milliseconds> retention{};

  // How the session ends.
  /// How long user code may continue once the session has to end: a callback, and then the
  /// processor's destructor, which always has at least half a second. The wait for a last answer of
  /// the daemon counts, too. grace_time is not the daemon's shutdownGraceMillis.
  std::chrono::milliseconds grace_time{10000};

  // Where messages go.
  /// Which messages are logged, how and where.
  log_options logging{};
  /// Called with each message of at least logging.level. If it is empty or throws, the
  /// message is written as `logging` demands. A session calls the function on a thread of its own,
  /// one message at a time, in order. Several sessions (see `serve`) call it at the same time.
  /// Before the session, messages are not filtered: the function gets them on the thread that
  /// called `run`; without one they go to stderr as text.
  std::function<void(const log_entry&)> log{};

  // What is observed.
  /// Which metrics are written, and where.
  metrics_options metrics{};
  /// The observers that receive the session's events. Without observers and outputs nothing is
  /// measured.
  std::vector<std::shared_ptr<observer>> observers{};
};

}  // namespace kclxx
