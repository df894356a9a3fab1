// SPDX-License-Identifier: Apache-2.0
// Options of the worker that the test kit plays.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace kclxx::testing {

/// Options that few tests set.
/// Thread safety: a value; the worker copies it.
struct worker_options {
  /// Varies the jitter of all retries: of checkpoints, `each`, `batches` and `parallel`. Runs with
  /// the same seed have the same jitter.
  std::uint32_t seed = 1;
  /// The daemon's shutdownGraceMillis: the time after request_shutdown() after which the daemon
  /// leaves, as by end_input(), whatever the child does. std::nullopt: it waits for the child.
  std::optional<std::chrono::milliseconds> shutdown_grace{};
  /// How much virtual time a function of `worker` may take without progress: no batch is delivered,
  /// and no further position is requested or persisted. Then the function throws std::logic_error
  /// with the last line of the log, and the child counts as crashed. A single wait may exceed the
  /// limit: the next wait throws. `advance` does not count.
  std::chrono::milliseconds idle_limit = std::chrono::hours(48);
  /// The names in shard_context, which `run` takes from the environment; std::nullopt: none is set.
  std::optional<std::string> stream_name{};
  /// As stream_name.
  std::optional<std::string> application_name{};
  /// As stream_name.
  std::optional<std::string> worker_id{};
};

}  // namespace kclxx::testing
