// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kclxx::tool {

struct start_failure {
  std::string what;     ///< with the remedy, in one line
  bool is_end = false;  ///< the worker is about to leave, with status 0

  bool operator==(const start_failure&) const = default;
};

/// What one of the failures that properties/logback.xml hands to the guard means. Nothing: the
/// daemon's own words are enough.
std::optional<start_failure> explain(std::string_view line);

}  // namespace kclxx::tool
