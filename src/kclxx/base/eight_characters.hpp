// SPDX-License-Identifier: Apache-2.0
// Text, eight characters at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kclxx::detail {

/// Eight characters, the first in the lowest byte.
using word = std::uint64_t;

constexpr word each(unsigned char byte) { return 0x0101010101010101U * byte; }
constexpr word high_bits = each(0x80);

inline word load(const char* source) noexcept {
  word value = 0;
  std::memcpy(&value, source, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

/// The index of the first character that has a bit in `marks`.
constexpr std::size_t first_marked(word marks) noexcept {
  return static_cast<std::size_t>(std::countr_zero(marks)) / sizeof(word);
}

/// Marks the first character that is no digit; those after it may be marked wrongly.
constexpr word non_digits(word text) noexcept {
  const word values = text ^ each('0');
  return (values | (values + each(6))) & each(0xf0);
}

/// Of digits less '0': pairs, then fours, then all are joined, each with one multiplication.
constexpr std::uint64_t value_of_digits(word digits) noexcept {
  const word joined = digits * 10 + (digits >> 8U);
  constexpr word pairs = 0x000000ff000000ffU;
  return ((joined & pairs) * (100 + (std::uint64_t{1'000'000} << 32U)) +
          ((joined >> 16U) & pairs) * (1 + (std::uint64_t{10'000} << 32U))) >>
         32U;
}

}  // namespace kclxx::detail
