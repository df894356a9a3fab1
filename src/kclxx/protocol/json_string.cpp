// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/printable.hpp"
#include "protocol/plain_text.hpp"

namespace kclxx::protocol {

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= sizeof(word) && (load(text.data() + at) & high_bits) == 0) {
      at += sizeof(word);
      continue;
    }
    const detail::character first = detail::first_character(text.substr(at));
    if (!first.is_utf8) return false;
    at += first.size;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const detail::character first = detail::first_character(text);
    result.append(first.is_utf8 ? text.substr(0, first.size) : "\xEF\xBF\xBD");
    text.remove_prefix(first.size);
  }
  return result;
}

namespace {

constexpr std::size_t escape_size = 6;  // \u0000

/// The code unit of a \u escape at the text's beginning.
std::optional<unsigned> code_unit(std::string_view text) {
  if (text.size() < escape_size || !text.starts_with("\\u")) return std::nullopt;
  unsigned value = 0;
  const char* end = text.data() + escape_size;
  const auto [stop, error] = std::from_chars(text.data() + 2, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool is_high_surrogate(unsigned unit) { return unit >= 0xd800 && unit <= 0xdbff; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xdc00 && unit <= 0xdfff; }
bool is_half_surrogate(unsigned unit) { return is_high_surrogate(unit) || is_low_surrogate(unit); }

/// The code point of a surrogate pair in two escapes at the text's beginning.
std::optional<unsigned> surrogate_pair(std::string_view text) {
  const auto high = code_unit(text);
  if (!high || !is_high_surrogate(*high)) return std::nullopt;
  const auto low = code_unit(text.substr(escape_size));
  if (!low || !is_low_surrogate(*low)) return std::nullopt;
  return 0x10000 + ((*high - 0xd800) << 10U) + (*low - 0xdc00);
}

void append_utf8(std::string& out, unsigned code_point) {
  const auto append = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xc0U | (code_point >> 6U));
    append(0x80U | (code_point & 0x3fU));
  } else if (code_point < 0x10000) {
    append(0xe0U | (code_point >> 12U));
    append(0x80U | ((code_point >> 6U) & 0x3fU));
    append(0x80U | (code_point & 0x3fU));
  } else {
    append(0xf0U | (code_point >> 18U));
    append(0x80U | ((code_point >> 12U) & 0x3fU));
    append(0x80U | ((code_point >> 6U) & 0x3fU));
    append(0x80U | (code_point & 0x3fU));
  }
}

constexpr std::string_view escaped_letters = "\"\\/bfnrt";
constexpr std::string_view meant_letters = "\"\\/\b\f\n\r\t";

/// Appends what the escape at the beginning of `text` means, and removes it. False if it is none.
bool take_escape(std::string_view& text, std::string& out, bool& replaced) {
  if (const auto pair = surrogate_pair(text)) {
    text.remove_prefix(2 * escape_size);
    append_utf8(out, *pair);
    return true;
  }
  if (const auto unit = code_unit(text)) {
    text.remove_prefix(escape_size);
    if (is_half_surrogate(*unit)) replaced = true;
    append_utf8(out, is_half_surrogate(*unit) ? 0xfffd : *unit);
    return true;
  }
  const std::size_t letter =
      text.size() < 2 ? std::string_view::npos : escaped_letters.find(text[1]);
  if (letter == std::string_view::npos) return false;
  out += meant_letters[letter];
  text.remove_prefix(2);
  return true;
}

bool needs_escape(char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; }

}  // namespace

bool replace_half_surrogates(char* text, std::size_t size) {
  bool has_replaced = false;
  std::size_t at = 0;
  while (at < size) {
    const void* const backslash = std::memchr(text + at, '\\', size - at);
    if (backslash == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(backslash) - text);
    const std::string_view escape(text + at, size - at);
    const auto unit = code_unit(escape);
    if (surrogate_pair(escape)) {
      at += 2 * escape_size;
    } else if (unit && is_half_surrogate(*unit)) {
      has_replaced = true;
      std::memcpy(text + at, "\\ufffd", escape_size);
      at += escape_size;
    } else {
      at += 2;  // the character after the backslash begins no other escape
    }
  }
  return has_replaced;
}

std::optional<std::string> unescape(std::string_view token, bool& replaced) {
  if (token.size() < 2 || token.front() != '"' || token.back() != '"' || !is_utf8(token)) {
    return std::nullopt;
  }
  std::string_view unread = token.substr(1, token.size() - 2);
  std::string text;
  bool has_replaced = false;
  while (!unread.empty()) {
    const auto plain = static_cast<std::size_t>(
        std::find_if(unread.begin(), unread.end(), needs_escape) - unread.begin());
    text.append(unread.substr(0, plain));
    unread.remove_prefix(plain);
    if (unread.empty()) break;
    if (unread.front() != '\\' || !take_escape(unread, text, has_replaced)) return std::nullopt;
  }
  if (has_replaced) replaced = true;
  return text;
}

void append_quoted(std::string& out, std::string_view text) {
  if (!is_utf8(text)) return append_quoted(out, replace_invalid_utf8(text));
  out += '"';
  while (!text.empty()) {
    const detail::character first = detail::first_character(text);
    const std::size_t letter = first.size == 1 && text.front() != '/'
                                   ? meant_letters.find(text.front())
                                   : std::string::npos;
    if (letter != std::string_view::npos) {
      out.append("\\").append(1, escaped_letters[letter]);
    } else if (detail::is_obeyed(first.code)) {
      out += detail::unicode_escape(first.code);
    } else {
      out += text.substr(0, first.size);
    }
    text.remove_prefix(first.size);
  }
  out += '"';
}

}  // namespace kclxx::protocol
