// SPDX-License-Identifier: Apache-2.0
// What a test sets of the daemon that the kit plays.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kclxx::testing {

/// What a test seldom sets.
/// Thread safety: a value; a daemon copies it.
struct daemon_options {
  /// For the jitter of all retries: of checkpoints, and of each, batches and parallel. It is the
  /// same in each run with the same seed.
  std::uint32_t seed = 1;
  /// The daemon's shutdownGraceMillis: so long after request_shutdown() the daemon leaves, whatever
  /// the child does, as by end_input(). std::nullopt: it waits.
  std::optional<std::chrono::milliseconds> shutdown_grace{};
  /// How much virtual time a function of `daemon` may take without progress: no batch is delivered,
  /// and no further position is requested or persisted. Then the function throws std::logic_error
  /// with the last line of the log, and the child counts as crashed. A single wait may exceed the
  /// limit: the next one throws. `advance` does not count.
  std::chrono::milliseconds idle_limit = std::chrono::hours(48);
  /// The names in shard_context, which `run` takes from the environment; std::nullopt: not set.
  std::optional<std::string> stream_name{};
  /// As stream_name.
  std::optional<std::string> application_name{};
  /// As stream_name.
  std::optional<std::string> worker_id{};
};

}  // namespace kclxx::testing
