// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>

namespace kclxx {

enum class log_level { info, warning, error };

/// Which records may be checkpointed.
enum class complete_when {
  /// Those of every batch that process_records returned from.
  on_return,
  /// Those that were asked for with checkpointer::request or checkpoint: for processors that
  /// finish records after process_records has returned.
  by_request,
};

/// How checkpoints that failed with a retryable error are tried again: after `initial_backoff`,
/// then twice as long each time, with jitter, up to `max_backoff`.
struct retry_options {
  std::chrono::milliseconds initial_backoff{100};
  std::chrono::milliseconds max_backoff{5000};
  /// Tries of one awaited checkpoint, the first included. With the values above: about 20 s.
  /// A requested checkpoint stays pending instead, and is tried again for as long as it takes.
  int max_attempts = 10;
};

/// How `run` behaves. Every field has a default that loses nothing.
struct run_options {
  // What is persisted, and when.
  complete_when complete = complete_when::on_return;
  /// With on_return: the least time between two checkpoints that the library makes by itself,
  /// measured when a batch returns. 0: after every batch.
  std::chrono::milliseconds checkpoint_interval{5000};
  retry_options retry{};
  /// In shutdown_requested: retries end after this time. Keep it below the daemon's
  /// shutdownGraceMillis and gracefulLeaseHandoffTimeoutMillis (30 s).
  std::chrono::milliseconds shutdown_retry_limit{10000};

  // What is accepted.
  /// The longest line from the daemon, in bytes. A batch is one line: 14 MB as read from Kinesis,
  /// far more when the daemon took aggregated records apart.
  std::size_t max_line_length = std::size_t{1} << 30;

  // How the process ends.
  /// How long a callback may go on after the daemon is gone, and the processor's destructor after
  /// the end of the dialogue.
  std::chrono::milliseconds grace_time{10000};

  // Where messages go.
  /// Called with each log message, without a newline. Empty: to stderr, a line each.
  /// Must be thread-safe and must not throw; it is called from the library's threads. It must not
  /// wait for a checkpoint: the thread that it is called on may be the one that the answer needs.
  std::function<void(log_level, std::string_view)> log{};
};

}  // namespace kclxx
