// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// ASCII letters, whatever the locale.
inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

/// The name that `text` is probably a misspelling of; empty: none is near. Case does not count.
std::string nearest(std::string_view text, std::span<const std::string_view> names);

}  // namespace kclxx::tool
