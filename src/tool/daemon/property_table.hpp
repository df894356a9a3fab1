// SPDX-License-Identifier: Apache-2.0
// The keys of the daemon's properties file. The rows are data: property_table.inc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tool/daemon/kcl_version.hpp"

namespace kclxx::tool {

/// How the daemon reads a value. What it does with an invalid one differs: see diagnostics.cpp.
enum class value_type {
  none,  ///< this version has no such key
  text,
  int32,          ///< 0, and what is not a number, leaves the default
  int64,          ///< the same
  int32_or_zero,  ///< 0 counts, and so it does (but for 1.x) when it is not a number
  int64_or_zero,  ///< the same
  decimal,
  flag,           ///< false leaves the default (not in 1.x)
  flag_or_false,  ///< false counts, and so it does when it is neither true nor false
  position,
  timestamp,  ///< seconds since 1970
  retrieval,
  metrics_level,
  client_version,
  billing,
  uri,
  region,
  arn,
  list,
  duration,
  tags,
  provider,   ///< of credentials
  no_effect,  ///< is taken, and changes nothing
  unusable,   ///< stops the daemon, whatever the value
};

struct property_row {
  std::string_view key;
  value_type kcl1;
  value_type kcl2;
  value_type kcl3;
  std::string_view default_value;  ///< empty: there is none, or it depends

  [[nodiscard]] value_type type(kcl_version kcl) const noexcept {
    return kcl == kcl_version::kcl1 ? kcl1 : kcl == kcl_version::kcl2 ? kcl2 : kcl3;
  }
};

/// Names that people write because other programs, or the daemon's documents, have them.
struct property_hint {
  std::string_view key;
  std::string_view advice;  ///< what to do instead, a whole sentence
};

std::span<const property_row> property_table();
std::span<const property_hint> property_hints();

/// The row's key that this version takes `key` for: 1.x does not mind the first letter's case,
/// 3.x not the case of AwsCredentialsProvider.
std::string canonical_key(std::string_view key, kcl_version kcl);

/// nullptr: there is none.
const property_row* find_row(std::string_view key, kcl_version kcl);

/// False: this version ignores the key. It has a row, or is a property of the AWS SDK's client
/// builder: kinesisClient.region and the like.
bool is_known(std::string_view key, kcl_version kcl);

}  // namespace kclxx::tool
