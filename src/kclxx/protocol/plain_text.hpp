// SPDX-License-Identifier: Apache-2.0
// Functions that look at eight characters of a text at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kclxx::protocol {

/// Eight characters, the first in the lowest byte.
using word = std::uint64_t;

constexpr word each(unsigned char byte) { return 0x0101010101010101U * byte; }
inline constexpr word high_bits = each(0x80);

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

struct plain_text {
  const char* end;
  bool is_ascii;
};

/// Takes the text up to the first character that ends a string or cannot be in it unescaped: a
/// quote, a backslash, a control character. The zeros after the line are such characters.
inline plain_text take_plain_text(const char* begin) {
  word seen = 0;
  for (;; begin += sizeof(word)) {
    const word text = load(begin);
    // A byte that becomes negative marks its character. Only the first mark is certain.
    const word marks =
        ((text - each(0x20)) | ((text ^ each('"')) - each(1)) | ((text ^ each('\\')) - each(1))) &
        ~text & high_bits;
    if (marks != 0) {
      const word before = marks ^ (marks - 1);
      return {begin + first_marked(marks), ((seen | (text & before)) & high_bits) == 0};
    }
    seen |= text;
  }
}

}  // namespace kclxx::protocol
