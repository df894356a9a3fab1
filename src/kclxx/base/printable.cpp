// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <algorithm>
#include <iterator>

namespace kclxx::detail {

namespace {

/// The lowest `count` hexadecimal digits of `value`.
std::string digits(char32_t value, int count) {
  std::string text;
  while (count-- > 0) text += "0123456789abcdef"[value >> (4 * count) & 0xfU];
  return text;
}

std::string escaped_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += "\\x" + digits(static_cast<unsigned char>(c), 2);
  return text;
}

/// Empty for a character that stays as it is.
std::string escaped(const character& first, std::string_view bytes, char quote) {
  if (!first.is_utf8) return escaped_bytes(bytes);
  if (quote != 0 && first.code == static_cast<unsigned char>(quote)) return {'\\', quote};
  if (!is_obeyed(first.code)) return {};
  switch (first.code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return first.code < 0x80 ? escaped_bytes(bytes) : unicode_escape(first.code);
  }
}

std::string made_printable(std::string_view text, std::size_t max_bytes, char quote) {
  constexpr std::size_t room_for_length = 32;
  std::string result;
  std::size_t cut_at = 0;
  for (std::string_view unread = text; !unread.empty();) {
    const character first = first_character(unread);
    const std::string_view bytes = unread.substr(0, first.size);
    const std::string escape = escaped(first, bytes, quote);
    result += escape.empty() ? bytes : escape;
    unread.remove_prefix(first.size);
    if (result.size() + room_for_length <= max_bytes) cut_at = result.size();
    if (result.size() > max_bytes) {
      result.resize(cut_at);
      return result + "... (" + std::to_string(text.size()) + " bytes)";
    }
  }
  return result;
}

}  // namespace

// Table 3-7 of the Unicode standard: only the second byte's range depends on the first.
character first_character(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {1, true, first};
  std::size_t size = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    size = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    size = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    size = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return {1, false, 0};
  }
  char32_t code = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const unsigned char byte = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    if (byte < low || byte > high) return {i, false, 0};
    code = code << 6U | (byte & 0x3fU);
    low = 0x80;
    high = 0xbf;
  }
  return {size, true, code};
}

bool is_obeyed(char32_t code) noexcept {
  struct range {
    char32_t first;
    char32_t last;
  };
  static constexpr range obeyed[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                     {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
                                     {0xfeff, 0xfeff}};
  return std::any_of(std::begin(obeyed), std::end(obeyed),
                     [&](const range& marks) { return code >= marks.first && code <= marks.last; });
}

std::string unicode_escape(char32_t code) { return "\\u" + digits(code, 4); }

std::string printable(std::string_view text, std::size_t max_bytes) {
  return made_printable(text, max_bytes, 0);
}

std::string quoted(std::string_view text) {
  return "'" + made_printable(text, longest_quote, '\'') + "'";
}

}  // namespace kclxx::detail
