// SPDX-License-Identifier: Apache-2.0
// ASCII letters, whatever the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace kclxx::tool {

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

}  // namespace kclxx::tool
