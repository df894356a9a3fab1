// SPDX-License-Identifier: Apache-2.0
// Sequence numbers as text, since the decoder makes no sequence_position for a record; and the
// limits of numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

namespace kclxx::protocol {

/// The latest time of a record, in the year 2262: it has a system_clock::time_point, which counts
/// nanoseconds.
inline constexpr std::int64_t most_milliseconds =
    std::numeric_limits<std::int64_t>::max() / 1'000'000;

/// Whether the text has 1 to 129 decimal digits, and nothing else.
inline bool is_sequence_number(std::string_view text) noexcept {
  // Without a branch for each character.
  unsigned char largest = 0;
  for (const char c : text) {
    const auto value = static_cast<unsigned char>(c - '0');
    largest = std::max(largest, value);
  }
  return !text.empty() && text.size() <= sequence_position::capacity && largest <= 9;
}

inline std::string describe_bad_digits(std::string_view text) {
  if (text.size() > sequence_position::capacity) {
    return "has " + std::to_string(text.size()) + " digits, more than " +
           std::to_string(sequence_position::capacity);
  }
  return text.empty() ? "is empty" : "is not a decimal number";
}

/// Compares as numbers: the result is below, equal to or above 0. An empty text is the number 0.
inline int compare_digits(std::string_view a, std::string_view b) noexcept {
  while (!a.empty() && a.front() == '0') a.remove_prefix(1);
  while (!b.empty() && b.front() == '0') b.remove_prefix(1);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

}  // namespace kclxx::protocol
