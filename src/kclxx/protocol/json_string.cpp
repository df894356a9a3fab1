// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>

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
    if (!unit) {
      at += 2;  // the character after the backslash begins no other escape
      continue;
    }
    at += escape_size;
    const auto next = code_unit(std::string_view(text + at, size - at));
    if (is_high_surrogate(*unit) && next && is_low_surrogate(*next)) {
      at += escape_size;
    } else if (is_high_surrogate(*unit) || is_low_surrogate(*unit)) {
      has_replaced = true;
      std::memcpy(text + at - escape_size, "\\ufffd", escape_size);
    }
  }
  return has_replaced;
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view escaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  if (!is_utf8(text)) return append_quoted(out, replace_invalid_utf8(text));
  out += '"';
  while (!text.empty()) {
    const detail::character first = detail::first_character(text);
    const std::size_t letter = escaped.find(text.front());
    if (letter != escaped.npos) {
      out.append("\\").append(1, letters[letter]);
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
