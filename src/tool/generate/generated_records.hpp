// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/record.hpp>

#include "tool/generate/generated_shards.hpp"
#include "tool/random_numbers.hpp"

namespace kclxx::tool {

struct record_shape {
  std::uint64_t smallest = 1024;  ///< bytes of data; sizes are spread evenly
  std::uint64_t largest = 1024;
  std::vector<std::string>
      payloads;  ///< the data of each shard's records, in turn; empty: invented
  std::size_t keys = 1000;
  std::uint64_t aggregate = 1;  ///< user records with the same sequence number
};

/// What the records of all shards take their text and keys from. Immutable.
class record_texts {
 public:
  record_texts(const record_shape& shape, random_numbers& random);

  [[nodiscard]] const record_shape& shape() const noexcept { return shape_; }
  /// Of a shard's record with this number: its payload, or words of ASCII letters, from anywhere in
  /// the text.
  [[nodiscard]] std::string_view data(std::uint64_t number, random_numbers& random) const;
  /// One key in eight is not ASCII.
  [[nodiscard]] std::string_view key(std::size_t number) const { return keys_[number]; }

 private:
  record_shape shape_;
  std::string text_;
  std::vector<std::string> keys_;
};

/// The records of one shard, batch by batch. Sequence numbers have 56 digits, rise within the
/// shard, and are higher than those of its parents.
///
/// Lifetime: `texts` and `shard` outlive it.
class generated_records {
 public:
  generated_records(const generated_shard& shard, const record_texts& texts, random_numbers random);

  /// The next `count` records, which arrived evenly over a second from `arrival` on; valid until
  /// the next call. Those of one aggregate arrived together.
  std::span<const record> next(std::uint64_t count, std::chrono::milliseconds arrival);

 private:
  void next_sequence_number(std::string& out);

  const generated_shard& shard_;
  const record_texts& texts_;
  random_numbers random_;
  std::string prefix_;  // of the sequence numbers
  std::uint64_t counter_ = 0;
  std::uint64_t records_so_far_ = 0;
  std::vector<std::string> sequence_numbers_;
  std::vector<record> records_;
};

}  // namespace kclxx::tool
