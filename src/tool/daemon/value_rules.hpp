// SPDX-License-Identifier: Apache-2.0
// The checks of one value; diagnostics.hpp is the interface.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon_model/java_text.hpp"
#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/property_table.hpp"

namespace kclxx::tool {

struct value_problem {
  std::string what;  // follows the key
  std::string why;
  std::string fix;
  severity level = severity::error;
};

/// A value, and who reads it.
struct value_context {
  const property_row& row;
  kcl_version which;
  std::string_view value;

  /// Cut when it is long.
  [[nodiscard]] std::string quoted() const {
    constexpr std::size_t most_shown = 200;
    return "\"" + std::string(value.substr(0, most_shown)) +
           (value.size() > most_shown ? "...\"" : "\"");
  }
  [[nodiscard]] std::string default_stays() const {
    const std::string_view value_of = row.default_value;
    return value_of.empty() ? "it counts as not set"
                            : "the default, " + std::string(value_of) + ", stays";
  }
  [[nodiscard]] bool is(kcl_version one) const { return which == one; }
};

inline constexpr std::string_view no_start = "The daemon does not start.";

using daemon_model::trimmed;
using daemon_model::whole_number;

std::optional<value_problem> check_whole(const value_context& setting, bool zero_counts,
                                         bool is_wide);
std::optional<value_problem> check_decimal(const value_context& setting);
std::optional<value_problem> check_timestamp(const value_context& setting);
std::optional<value_problem> check_uri(const value_context& setting);
std::optional<value_problem> check_region(const value_context& setting);
std::optional<value_problem> check_arn(const value_context& setting);
std::optional<value_problem> check_duration(const value_context& setting);
std::optional<value_problem> check_tags(const value_context& setting);
std::optional<value_problem> check_provider(const value_context& setting);
std::optional<value_problem> check_text(const value_context& setting);

}  // namespace kclxx::tool
