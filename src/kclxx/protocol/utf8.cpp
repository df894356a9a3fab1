// SPDX-License-Identifier: Apache-2.0
#include "protocol/utf8.hpp"

#include <cstddef>
#include <simdjson.h>

namespace kclxx::protocol {

namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return index < text.size() ? static_cast<unsigned char>(text[index]) : 0;
}

struct sequence {
  std::size_t length;
  bool is_valid;
};

// Table 3-7 of the Unicode standard: only the second byte's range depends on the first.
sequence next_sequence(std::string_view text, std::size_t offset) {
  const unsigned char first = byte_at(text, offset);
  if (first < 0x80) return {1, true};
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return {1, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned char byte = byte_at(text, offset + i);
    if (byte < low || byte > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true};
}

}  // namespace

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text); }

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    const auto [length, is_valid] = next_sequence(text, at);
    if (is_valid) {
      result.append(text.substr(at, length));
    } else {
      result.append("\xEF\xBF\xBD");
    }
    at += length;
  }
  return result;
}

}  // namespace kclxx::protocol
