// SPDX-License-Identifier: Apache-2.0
// How the values of one key are judged; findings.hpp is what others use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tool/daemon/findings.hpp"
#include "tool/daemon/property_table.hpp"

namespace kclxx::launcher {

struct problem {
  std::string what;  // stands behind the key
  std::string why;
  std::string fix;
  severity level = severity::error;
};
using verdict = std::optional<problem>;

/// A value, and who reads it.
struct judged {
  const property_row& row;
  generation which;
  std::string_view value;

  [[nodiscard]] std::string quoted() const { return "\"" + std::string(value) + "\""; }
  [[nodiscard]] std::string default_stays() const {
    const std::string_view value_of = row.default_value;
    return value_of.empty() ? "it counts as not set"
                            : "the default, " + std::string(value_of) + ", stays";
  }
  [[nodiscard]] bool is(generation one) const { return which == one; }
};

inline constexpr std::string_view no_start = "The daemon does not start.";

/// Without blanks and control characters at its ends, as Java's String.trim.
std::string_view trimmed(std::string_view text);
/// As Integer.valueOf and Long.valueOf: ASCII digits, either sign.
std::optional<std::int64_t> whole_number(std::string_view text);

verdict judge_whole(const judged& it, bool zero_counts, bool is_wide);
verdict judge_decimal(const judged& it);
verdict judge_flag(const judged& it, bool false_counts);
verdict judge_position(const judged& it);
verdict judge_retrieval(const judged& it);
verdict judge_metrics_level(const judged& it);
verdict judge_client_version(const judged& it);
verdict judge_billing(const judged& it);
verdict judge_timestamp(const judged& it);
verdict judge_uri(const judged& it);
verdict judge_region(const judged& it);
verdict judge_arn(const judged& it);
verdict judge_duration(const judged& it);
verdict judge_tags(const judged& it);
verdict judge_provider(const judged& it);
verdict judge_text(const judged& it);

}  // namespace kclxx::launcher
