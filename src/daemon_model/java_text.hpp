// SPDX-License-Identifier: Apache-2.0
// How Java reads a number from text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace kclxx::daemon_model {

/// As String.trim: without the characters up to the space at both ends.
inline std::string_view trimmed(std::string_view text) noexcept {
  const auto is_trimmed = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && is_trimmed(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_trimmed(text.back())) text.remove_suffix(1);
  return text;
}

/// As Long.parseLong of ASCII digits: one sign, no blanks. std::nullopt: no number, or too large.
inline std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace kclxx::daemon_model
