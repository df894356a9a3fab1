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

std::optional<value_problem> check_choice(const value_context& it,
                                          std::initializer_list<std::string_view> names) {
  if (is_one_of(it.value, names)) return std::nullopt;
  std::string list;
  for (const std::string_view name : names) {
    list += list.empty() ? "" : ", ";
    for (const char c : name) list += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return value_problem{"is " + it.quoted() + ", which is none of " + list,
                       it.is(kcl_version::kcl1)
                           ? "The daemon logs a warning, and " + it.default_stays() + "."
                           : std::string(no_start),
                       "Write one of them, with nothing after it."};
}

}  // namespace

std::optional<value_problem> check_flag(const value_context& it, bool false_counts) {
  const bool is_first = it.is(kcl_version::kcl1);
  const bool is_true = is_first ? is_one_of(it.value, {"true"})
                                : is_one_of(it.value, {"true", "yes", "y", "on", "1"});
  const bool is_false = is_first ? is_one_of(it.value, {"false"})
                                 : is_one_of(it.value, {"false", "no", "n", "off", "0"});
  if (is_true) return std::nullopt;
  if (!is_false) {
    return value_problem{"is " + it.quoted() + ", which is neither true nor false",
                         "The daemon reads it as false, without a warning.",
                         "Write true or false."};
  }
  if (is_first || false_counts || it.row.default_value != "true") return std::nullopt;
  return value_problem{"is false", "Here false counts as not set: the default, true, stays.",
                       "Remove it; in this daemon it cannot be false."};
}

std::optional<value_problem> check_position(const value_context& it) {
  if (lower(it.value) == "at_timestamp") {
    const bool is_first = it.is(kcl_version::kcl1);
    return value_problem{
        "is AT_TIMESTAMP without its time",
        is_first ? "Kinesis refuses every read." : std::string(no_start),
        std::string("Remove it, and set ") +
            (is_first ? "timestampAtInitialPositionInStream" : "initialPositionInStreamExtended") +
            " to seconds since 1970."};
  }
  return check_choice(it, {"trim_horizon", "latest"});
}

std::optional<value_problem> check_retrieval(const value_context& it) {
  return check_choice(it, {"default", "polling", "fanout"});
}

std::optional<value_problem> check_metrics_level(const value_context& it) {
  return check_choice(it, {"none", "summary", "detailed"});
}

std::optional<value_problem> check_client_version(const value_context& it) {
  return check_choice(it, {"client_version_config_3x", "client_version_config_compatible_with_2x",
                           "client_version_config_compatible_with_2x_phase1"});
}

std::optional<value_problem> check_billing(const value_context& it) {
  return check_choice(it, {"pay_per_request", "provisioned"});
}

}  // namespace kclxx::tool
