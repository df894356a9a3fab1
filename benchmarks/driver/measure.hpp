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

/// A processRecords line as the daemon writes it (daemon_model, which the conformance tests hold
/// against the daemon's own classes), built once. Only its sequence numbers change from
/// batch to batch, because a client may rightly leave out a checkpoint that would not go forward.
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
  /// Of the records' data, before base64.
  [[nodiscard]] std::size_t payload() const noexcept { return payload_; }

 private:
  struct free_memory {
    void operator()(char* memory) const noexcept { std::free(memory); }
  };

  std::unique_ptr<char, free_memory> text_;  // on a page, where the kernel's copy is fastest
  std::size_t size_ = 0;
  std::vector<std::size_t> batch_digits_;  // where in the text; one place a record
  std::size_t payload_;
};

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
