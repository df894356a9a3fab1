// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/fnv.hpp"

namespace kclxx::detail {

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
