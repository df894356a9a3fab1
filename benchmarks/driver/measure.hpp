// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// What to do with one client, as the JSON object on the driver's command line.
struct job {
  std::size_t records = 1000;  ///< a batch
  std::size_t bytes = 100;     ///< a record
  double seconds = 1;          ///< of round trips that count; before them a third as many do not
  std::size_t starts = 0;      ///< if not 0: start the client so often, and measure nothing else
  std::size_t shards = 0;      ///< if not 0: start so many clients, and drive them at once
  std::size_t batches = 0;     ///< if not 0: send so many in steady writes, and measure nothing
  bool decodes = true;         ///< the client reports its bytes at the end: all but the floors do
  double settle_seconds = 0;   ///< then small batches for so long, and the memory again
  std::optional<int> driver_cpu{};
  std::optional<int> child_cpu{};

  /// Errors: std::invalid_argument for a key that does not exist; nlohmann's for a wrong type.
  static job parse(const std::string& text);
};

/// Lockstep batches, as fast as they go.
nlohmann::json measure_batches(const job& what, const std::vector<std::string>& command);

/// A fixed dialogue for those that count what a client does (benchmarks/cost): a write follows when
/// the client has read the one before, so each of its reads has the same bytes in every run.
nlohmann::json play_batches(const job& what, const std::vector<std::string>& command);

/// One client for each shard, and a thread of the driver: what they hold before the first batch and
/// after the last, and lockstep batches of all at once.
nlohmann::json measure_shards(const job& what, const std::vector<std::string>& command);

/// From before the process exists until it has answered initialize.
nlohmann::json measure_starts(const job& what, const std::vector<std::string>& command);

}  // namespace bench
