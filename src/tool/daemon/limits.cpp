// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/spelling.hpp"
#include "tool/daemon/value_rules.hpp"

namespace kclxx::tool {

namespace {

std::optional<std::int64_t> number_above_0(const properties& all, std::string_view key,
                                           kcl_version kcl) {
  const property* const one = effective(all, key, kcl);
  if (one == nullptr) return std::nullopt;
  const auto number = whole_number(trimmed(one->value));
  return number.value_or(0) > 0 ? number : std::nullopt;
}

}  // namespace

bool uses_fan_out(const properties& all, kcl_version kcl) {
  if (kcl == kcl_version::kcl1) return false;
  const property* const mode = effective(all, "retrievalMode", kcl);
  if (mode != nullptr && lower(mode->value) != "default") return lower(mode->value) == "fanout";
  return std::none_of(polling_keys.begin(), polling_keys.end(), [&](std::string_view key) {
    return number_above_0(all, key, kcl).has_value();
  });
}

}  // namespace kclxx::tool
