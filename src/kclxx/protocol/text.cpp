// SPDX-License-Identifier: Apache-2.0
#include "protocol/text.hpp"

#include <algorithm>
#include <cstddef>

#include <nlohmann/json.hpp>

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
sequence next_sequence(std::string_view text, std::size_t at) {
  const unsigned char first = byte_at(text, at);
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
    const unsigned char next = byte_at(text, at + i);
    if (next < low || next > high) return {i, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true};
}

bool needs_escape(char c) { return c == '"' || c == '\\' || c < 0x20 || c == 0x7f; }

}  // namespace

std::optional<std::string> unescape(std::string_view token) {
  const auto value = nlohmann::json::parse(token, nullptr, false);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

void append_quoted(std::string& out, std::string_view text) {
  // char is signed or not; either way a byte beyond ASCII takes the slow way.
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && !needs_escape(c);
  });
  if (is_plain) {
    out.append("\"").append(text).append("\"");
  } else {
    using nlohmann::json;
    out.append(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [length, is_valid] = next_sequence(text, at);
    if (!is_valid) return false;
    at += length;
  }
  return true;
}

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
