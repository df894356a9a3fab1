// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/random_numbers.hpp"

namespace kclxx::tool {

/// One shard of a stream that `kclxx generate` makes up.
struct generated_shard {
  std::size_t number = 0;
  std::size_t born_in = 0;    ///< the epoch in which it was made; resharding begins the next one
  std::size_t first_key = 0;  ///< its part of the keys, as a shard has a part of the hash range
  std::size_t end_key = 0;
  std::vector<std::size_t> parents{};  ///< their numbers; two after a merge
  bool is_closed = false;              ///< it was split or merged: it has an end
  std::uint64_t records = 0;

  /// "shardId-000000000003"
  [[nodiscard]] std::string id() const;
  bool operator==(const generated_shard&) const = default;
};

struct stream_shape {
  std::size_t shards = 1;
  std::size_t reshardings = 0;
  std::size_t keys = 1000;
  std::uint64_t records = 10000;
};

/// The shards in the order of their numbers. `reshardings` times one of the open shards is split
/// in halves, or two neighbours are merged; the records are spread evenly over the time between
/// and the shards that are open then.
/// Errors: std::invalid_argument when there are fewer keys than shards need.
std::vector<generated_shard> generate_shards(const stream_shape& shape, random_numbers& random);

}  // namespace kclxx::tool
