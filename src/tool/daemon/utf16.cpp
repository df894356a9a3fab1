// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/utf16.hpp"

#include <cstddef>

namespace kclxx::tool {

namespace {

bool is_high(char16_t c) { return c >= 0xD800 && c < 0xDC00; }
bool is_low(char16_t c) { return c >= 0xDC00 && c < 0xE000; }

void append(std::string& text, char32_t c) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      put(0xE0 | (c >> 12));
    } else {
      put(0xF0 | (c >> 18));
      put(0x80 | ((c >> 12) & 0x3F));
    }
    put(0x80 | ((c >> 6) & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

struct decoded {
  char32_t c;
  std::size_t size;  // 0: no sequence begins here
};

decoded decode(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xC2 ? 0
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 0;
  if (size == 0 || size > text.size()) return {0, 0};
  static constexpr unsigned char payload[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t c = first & payload[size];
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {0, 0};
    c = (c << 6) | (byte & 0x3F);
  }
  return {c, size};
}

}  // namespace

std::string to_utf8(std::u16string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    if (is_high(text[i]) && i + 1 < text.size() && is_low(text[i + 1])) {
      c = 0x10000 + ((c - 0xD800) << 10) + (text[++i] - 0xDC00U);
    }
    append(result, c);
  }
  return result;
}

std::u16string to_utf16(std::string_view text) {
  std::u16string result;
  while (!text.empty()) {
    auto [c, size] = decode(text);
    if (size == 0) {
      c = static_cast<unsigned char>(text.front());
      size = 1;
    }
    if (c < 0x10000) {
      result.push_back(static_cast<char16_t>(c));
    } else {
      result.push_back(static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10)));
      result.push_back(static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF)));
    }
    text.remove_prefix(size);
  }
  return result;
}

}  // namespace kclxx::tool
