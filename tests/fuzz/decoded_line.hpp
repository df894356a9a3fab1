// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fuzz/expect.hpp"
#include "protocol/decoder.hpp"

namespace kclxx {

struct decoded_line {
  std::vector<record> records;
  std::deque<std::string> arena;
  bool replaced = false;
  std::variant<protocol::message, protocol::decode_error> result;
};

/// Lifetime: the records are views into `memory`.
inline decoded_line decode(protocol::decoder& decoder, std::string_view line,
                           std::vector<char>& memory) {
  // Exactly the padding that is asked for: AddressSanitizer sees a byte more.
  memory.assign(line.begin(), line.end());
  memory.resize(line.size() + protocol::decoder::padding, '"');
  decoded_line out;
  out.result = decoder.decode(memory.data(), line.size(), out.records, out.arena, out.replaced);
  return out;
}

inline void expect_same(const std::vector<record>& all, const std::vector<record>& others) {
  expect(all.size() == others.size(), "as many records");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const record& a = all[i];
    const record& b = others[i];
    expect(a.data() == b.data() && a.has_data() == b.has_data(), "the same data");
    expect(a.partition_key() == b.partition_key(), "the same key");
    expect(a.sequence_number() == b.sequence_number(), "the same sequence number");
    expect(a.sub_sequence_number() == b.sub_sequence_number(), "the same sub-sequence number");
    expect(a.approximate_arrival_timestamp() == b.approximate_arrival_timestamp(), "the same time");
  }
}

}  // namespace kclxx
