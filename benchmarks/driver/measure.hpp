// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

/// A processRecords line as the daemon writes it, by the daemon model. It is built once, and only
/// its sequence numbers change from batch to batch: a client may rightly leave out a checkpoint
/// that would not go forward.
class batch_line {
 public:
  /// Records of `bytes` random bytes each, the same in every run.
  batch_line(std::size_t records, std::size_t bytes);

  /// Numbers the records for batch `batch`, higher than all of the batches before.
  void renumber(std::uint64_t batch);

  /// Newline included.
  [[nodiscard]] std::string_view text() const noexcept { return {text_.get(), size_}; }
  [[nodiscard]] std::string_view last_sequence_number() const noexcept;
  [[nodiscard]] std::size_t records() const noexcept { return batch_digits_.size(); }
  /// The bytes of the records' data, without base64.
  [[nodiscard]] std::size_t payload() const noexcept { return payload_; }

 private:
  struct free_memory {
    void operator()(char* memory) const noexcept { std::free(memory); }
  };

  std::unique_ptr<char, free_memory> text_;  ///< begins at a page: the kernel copies it fastest
  std::size_t size_ = 0;
  std::vector<std::size_t> batch_digits_;  ///< where in the text each record has the batch's number
  std::size_t payload_;
};

/// What to do with one client, as the JSON object on the driver's command line.
struct job {
  std::size_t records = 1000;  ///< in a batch
  std::size_t bytes = 100;     ///< of a record's data
  double seconds = 1;          ///< how long round trips are counted, after a third of this time
  std::size_t starts = 0;      ///< if not 0: start the client so often, and measure nothing else
  std::size_t shards = 0;      ///< if not 0: start so many clients, and drive them at once
  std::size_t batches = 0;     ///< if not 0: send so many in steady writes, and measure nothing
  bool decodes = true;         ///< the client reports its bytes at the end: all but the floors do
  double settle_seconds =
      0;  ///< how long small batches follow, until the memory is looked at again
  std::optional<int> driver_cpu{};
  std::optional<int> child_cpu{};

  /// Errors: std::invalid_argument for a key that does not exist; nlohmann's for a wrong type.
  static job parse(const std::string& text);
};

/// Measures batches in lockstep, as fast as they go.
nlohmann::json measure_batches(const job& job, const std::vector<std::string>& command);

/// Plays a fixed dialogue, for benchmarks/cost, which counts what a client does: a write follows
/// when the client has read the write before, so that each of its reads has the same bytes in every
/// run.
nlohmann::json play_batches(const job& job, const std::vector<std::string>& command);

/// Measures several clients at the same time, one for each shard, each driven by a thread: what
/// they hold before the first batch and after the last, and batches in lockstep.
nlohmann::json measure_shards(const job& job, const std::vector<std::string>& command);

/// Measures the time from before the process exists until it has answered initialize.
nlohmann::json measure_starts(const job& job, const std::vector<std::string>& command);

}  // namespace bench
