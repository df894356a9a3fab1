// SPDX-License-Identifier: Apache-2.0
// What the daemon makes of each value. It ignores many bad ones silently, because of
// commons-beanutils: what that cannot convert becomes 0 or false, and those count as "not set".
#include "tool/daemon/value_rules.hpp"

#include <algorithm>
#include <initializer_list>
#include <locale>
#include <vector>

#include <boost/algorithm/string/case_conv.hpp>

#include "tool/daemon/spelling.hpp"
#include "tool/daemon/utf16.hpp"

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
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  boost::to_upper(list, std::locale::classic());
  return value_problem{"is " + setting.quoted() + ", which is none of " + list,
                       setting.is(kcl_version::kcl1)
                           ? "The daemon logs a warning, and " + setting.default_stays() + "."
                           : std::string(no_start),
                       "Write one of them, with nothing after it."};
}

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

std::optional<value_problem> check_value(const value_context& setting) {
  switch (setting.row.type(setting.which)) {
    case value_type::int32:
      return check_whole(setting, false, false);
    case value_type::int64:
      return check_whole(setting, false, true);
    case value_type::int32_or_zero:
      return check_whole(setting, true, false);
    case value_type::int64_or_zero:
      return check_whole(setting, true, true);
    case value_type::decimal:
      return check_decimal(setting);
    case value_type::flag:
      return check_flag(setting, false);
    case value_type::flag_or_false:
      return check_flag(setting, true);
    case value_type::position:
      return check_position(setting);
    case value_type::timestamp:
      return check_timestamp(setting);
    case value_type::retrieval:
      return check_choice(setting, {"default", "polling", "fanout"});
    case value_type::metrics_level:
      return check_choice(setting, {"none", "summary", "detailed"});
    case value_type::client_version:
      return check_choice(setting,
                          {"client_version_config_3x", "client_version_config_compatible_with_2x",
                           "client_version_config_compatible_with_2x_phase1"});
    case value_type::billing:
      return check_choice(setting, {"pay_per_request", "provisioned"});
    case value_type::uri:
      return check_uri(setting);
    case value_type::region:
      return check_region(setting);
    case value_type::arn:
      return check_arn(setting);
    case value_type::duration:
      return check_duration(setting);
    case value_type::tags:
      return check_tags(setting);
    case value_type::provider:
      return check_provider(setting);
    case value_type::text:
      return check_text(setting);
    case value_type::no_effect:
      return value_problem{"has no effect in " + std::string(name_of(setting.which)),
                           "The daemon accepts it and ignores it.", "Remove it.",
                           severity::warning};
    case value_type::unusable:
      return value_problem{"cannot be set in a file", std::string(no_start), "Remove it."};
    case value_type::list:
    case value_type::none:
      break;
  }
  return std::nullopt;
}

/// Bytes above 0x7F that make sense as UTF-8 were meant as that.
bool was_utf8(std::string_view value) {
  std::string bytes;
  bool has_high = false;
  for (const char16_t c : to_utf16(value)) {
    if (c > 0xFF) return false;
    has_high = has_high || c > 0x7F;
    bytes.push_back(static_cast<char>(c));
  }
  return has_high && to_utf16(bytes).size() < bytes.size();
}

}  // namespace

void check_values(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  for (const property& one : all) {
    if (was_utf8(one.value)) {
      problems.push_back(
          diagnostic_at(one, severity::error, one.key + " has letters beyond ASCII, in UTF-8",
                        "The daemon reads the file as ISO-8859-1 and gets other characters.",
                        "Write each as \\u and four hexadecimal digits."));
    }
    const property_row* const row = find_row(one.key, kcl);
    if (row == nullptr) continue;
    if (auto found = check_value({*row, kcl, one.value})) {
      problems.push_back(
          diagnostic_at(one, found->level, one.key + " " + found->what, found->why, found->fix));
    }
  }
}

}  // namespace kclxx::tool
