// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace kclxx::detail {

/// Looks up a variable of this process, or of the launcher that has handed a shard over.
/// std::nullopt: it is not set, or empty.
using environment = std::function<std::optional<std::string>(const char* name)>;

/// The environment of this process.
inline std::optional<std::string> own_environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace kclxx::detail
