// SPDX-License-Identifier: Apache-2.0
// Values that are one of a few words.
#include <algorithm>
#include <initializer_list>

#include "tool/daemon/ascii.hpp"
#include "tool/daemon/value_rules.hpp"

namespace kclxx::tool {

namespace {

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> all) {
  const std::string text = lower(value);
  return std::any_of(all.begin(), all.end(), [&](std::string_view one) { return text == one; });
}

std::optional<value_problem> check_choice(const value_context& setting,
                                          std::initializer_list<std::string_view> names) {
  if (is_one_of(setting.value, names)) return std::nullopt;
  std::string list;
  for (const std::string_view name : names) {
    list += list.empty() ? "" : ", ";
    for (const char c : name) list += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return value_problem{"is " + setting.quoted() + ", which is none of " + list,
                       setting.is(kcl_version::kcl1)
                           ? "The daemon logs a warning, and " + setting.default_stays() + "."
                           : std::string(no_start),
                       "Write one of them, with nothing after it."};
}

}  // namespace

std::optional<value_problem> check_flag(const value_context& setting, bool false_counts) {
  const bool is_first = setting.is(kcl_version::kcl1);
  const bool is_true = is_first ? is_one_of(setting.value, {"true"})
                                : is_one_of(setting.value, {"true", "yes", "y", "on", "1"});
  const bool is_false = is_first ? is_one_of(setting.value, {"false"})
                                 : is_one_of(setting.value, {"false", "no", "n", "off", "0"});
  if (is_true) return std::nullopt;
  if (!is_false) {
    return value_problem{"is " + setting.quoted() + ", which is neither true nor false",
                         "The daemon reads it as false, without a warning.",
                         "Write true or false."};
  }
  if (is_first || false_counts || setting.row.default_value != "true") return std::nullopt;
  return value_problem{"is false", "Here false counts as not set: the default, true, stays.",
                       "Remove it; in this daemon it cannot be false."};
}

std::optional<value_problem> check_position(const value_context& setting) {
  if (lower(setting.value) == "at_timestamp") {
    const bool is_first = setting.is(kcl_version::kcl1);
    return value_problem{
        "is AT_TIMESTAMP without its time",
        is_first ? "Kinesis refuses every read." : std::string(no_start),
        std::string("Remove it, and set ") +
            (is_first ? "timestampAtInitialPositionInStream" : "initialPositionInStreamExtended") +
            " to seconds since 1970."};
  }
  return check_choice(setting, {"trim_horizon", "latest"});
}

std::optional<value_problem> check_retrieval(const value_context& setting) {
  return check_choice(setting, {"default", "polling", "fanout"});
}

std::optional<value_problem> check_metrics_level(const value_context& setting) {
  return check_choice(setting, {"none", "summary", "detailed"});
}

std::optional<value_problem> check_client_version(const value_context& setting) {
  return check_choice(setting,
                      {"client_version_config_3x", "client_version_config_compatible_with_2x",
                       "client_version_config_compatible_with_2x_phase1"});
}

std::optional<value_problem> check_billing(const value_context& setting) {
  return check_choice(setting, {"pay_per_request", "provisioned"});
}

}  // namespace kclxx::tool
