// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/generate/generated_shards.hpp"
#include "tool/random_numbers.hpp"

namespace kclxx::tool {

struct record_shape {
  std::uint64_t smallest = 1024;  ///< bytes of data; sizes are spread evenly
  std::uint64_t largest = 1024;
  /// The data of each shard's records, in turn; empty: invented.
  std::vector<std::string> payloads;
  std::size_t keys = 1000;
  std::uint64_t aggregate = 1;  ///< user records with the same sequence number
};

/// How the dialogue of a shard that is still open ends, before the end of input.
enum class dialogue_end { shutdown, lease_lost, shard_end, none };

struct dialogue_shape {
  record_shape record;
  std::uint64_t batch = 1000;  ///< records in one processRecords
  dialogue_end end = dialogue_end::shutdown;

  /// `batch`, or more: an aggregate is never split between batches.
  [[nodiscard]] std::uint64_t whole_batch() const noexcept;
  /// At most, of a batch with so many records: characters of the daemon's line.
  [[nodiscard]] std::uint64_t longest_line(std::uint64_t records) const noexcept;
};

/// Writes the transcript of each shard to a new file in the directory, which it makes if it is not
/// there. When one cannot be written it leaves none, and no directory of its own.
/// Errors: std::system_error, also when a file is already there; cancelled.
void write_transcripts(const std::string& directory, const dialogue_shape& shape,
                       const std::vector<generated_shard>& shards, random_numbers& random);

}  // namespace kclxx::tool
