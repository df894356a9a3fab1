// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/fnv.hpp"

namespace kclxx::detail {

/// Whether it is a letter or a digit of ASCII, or one of `further` characters.
inline bool is_plain(char c, std::string_view further) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         further.find(c) != std::string_view::npos;
}

/// The text with a % and two hexadecimal digits in place of each byte that is not plain. Different
/// texts stay different, unless '%' is plain.
inline std::string percent_encoded(std::string_view text, std::string_view further) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c, further)) {
      encoded += c;
    } else {
      encoded.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
  }
  return encoded;
}

/// The name of a file with names of an application, a stream and a shard in it. DynamoDB and
/// Kinesis allow these to be longer together than the 255 bytes that a file's name can have. So a
/// name that leaves no room for the suffix of a temporary file is cut in its middle, where a hash
/// of the whole keeps it apart from others.
inline std::string file_name(const std::string& beginning, std::string_view ending) {
  constexpr std::size_t max_size = 200;
  constexpr std::size_t kept_end = 48;  // most shards' names fit
  std::string name = beginning + std::string(ending);
  if (name.size() <= max_size) return name;
  fnv_hash hash;
  hash.add(name);
  char text[19];
  std::snprintf(text, sizeof text, "-%016llx-", static_cast<unsigned long long>(hash.value()));
  const std::size_t end = kept_end + ending.size();
  return name.replace(max_size - end - 18, name.size() - max_size + 18, text);
}

}  // namespace kclxx::detail
