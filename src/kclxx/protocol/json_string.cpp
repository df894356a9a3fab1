// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <nlohmann/json.hpp>

namespace kclxx::protocol {

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

std::string replace_lone_surrogates(std::string_view token) {
  std::string result;
  while (!token.empty()) {
    std::size_t size = 1;
    bool is_lone = false;
    if (const auto unit = code_unit(token)) {
      const auto next = code_unit(token.substr(escape_size));
      const bool is_pair = is_high_surrogate(*unit) && next && is_low_surrogate(*next);
      size = is_pair ? 2 * escape_size : escape_size;
      is_lone = !is_pair && (is_high_surrogate(*unit) || is_low_surrogate(*unit));
    } else if (token.front() == '\\') {
      size = std::min<std::size_t>(2, token.size());  // an escaped backslash begins nothing
    }
    result.append(is_lone ? "\\ufffd" : token.substr(0, size));
    token.remove_prefix(size);
  }
  return result;
}

bool needs_escape(char c) { return c == '"' || c == '\\' || c < 0x20 || c == 0x7f; }

}  // namespace

std::optional<std::string> unescape(std::string_view token, bool& replaced) {
  using nlohmann::json;
  json value = json::parse(token, nullptr, false);
  if (value.is_discarded()) {
    value = json::parse(replace_lone_surrogates(token), nullptr, false);
    if (value.is_string()) replaced = true;
  }
  if (!value.is_string()) return std::nullopt;
  return std::move(value.get_ref<std::string&>());
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

}  // namespace kclxx::protocol
