// SPDX-License-Identifier: Apache-2.0
// Events about single records, as values. `each`, `batches` and `parallel` (kclxx/processing.hpp)
// send them.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// A handler was called for a record, or for a part of a batch, and ended. `position` is that of
/// the first or only record.
struct record_attempted {
  /// The result. That of an async_record_handler is what its completion reported.
  enum class outcome { succeeded, failed };
  sequence_position position;
  /// From 1 on.
  int attempt = 1;
  /// How long the handler took, by the shard's clock, which is virtual in the test kit.
  std::chrono::nanoseconds duration;
  outcome how = outcome::succeeded;
  /// What it threw; empty when it succeeded.
  std::string error{};
  bool operator==(const record_attempted&) const = default;
};

/// A failed record will be tried again.
struct record_retried {
  sequence_position position;
  /// The number of the attempt to come, from 2 on.
  int attempt = 2;
  /// The wait before that attempt. The attempt can begin later, when other records
  /// are being processed.
  std::chrono::milliseconds delay;
  std::string error{};  ///< why the last one failed
  bool operator==(const record_retried&) const = default;
};

/// A record is stored for later and counts as complete.
struct record_parked {
  sequence_position position;
  int attempts = 1;     ///< those that failed
  std::string error{};  ///< why the last one failed
  bool operator==(const record_parked&) const = default;
};

/// A record is left out, as the policy demands, and counts as complete.
struct record_skipped {
  sequence_position position;
  int attempts = 1;     ///< those that failed
  std::string error{};  ///< why the last one failed
  bool operator==(const record_skipped&) const = default;
};

/// The circuit of the shard opened or closed; see circuit_breaker.
struct circuit_changed {
  bool is_open = false;
  std::int64_t failures = 0;  ///< attempts that failed in a row, until now
  std::string error{};        ///< of the last one; empty when the circuit closed
  bool operator==(const circuit_changed&) const = default;
};

/// How many records are delivered and not complete. `parallel` sends it when its window becomes
/// full or empty, and otherwise about once a second while the window changes; `batches` with a
/// linger, when records are gathered and when they are handed over.
struct window_changed {
  std::size_t records = 0;
  /// Of their data, after decoding base64.
  std::uint64_t bytes = 0;
  /// When the oldest of them was delivered, by the shard's clock; std::nullopt when none is left.
  std::optional<std::chrono::steady_clock::time_point> oldest{};
  /// Everything up to here is complete; std::nullopt until the first record is complete.
  std::optional<sequence_position> watermark{};
  bool operator==(const window_changed&) const = default;
};

/// A handler runs for longer than parallel_options::stuck_after. Sent with each report of such a
/// handler: after stuck_after, and then each time that the handler's time has doubled. Sent with
/// `handlers` = 0, and without a position, when no handler is stuck any more.
struct handlers_stuck {
  std::size_t handlers = 0;  ///< that are stuck now; the other fields describe the reported one
  std::optional<sequence_position> position{};
  std::string partition_key{};
  int attempt = 1;
  /// Since the handler began.
  std::chrono::milliseconds age{0};
  bool operator==(const handlers_stuck&) const = default;
};

}  // namespace kclxx
