// SPDX-License-Identifier: Apache-2.0
// What the daemon makes of each value. That a bad one often goes without a word is
// commons-beanutils' doing: what it cannot convert becomes 0 or false, and those count as "not
// set".
#include "tool/daemon/value_rules.hpp"

#include <vector>

#include "tool/daemon/utf16.hpp"

namespace kclxx::launcher {

namespace {

verdict judge(const judged& it) {
  switch (it.row.type(it.which)) {
    case value_type::int32:
      return judge_whole(it, false, false);
    case value_type::int64:
      return judge_whole(it, false, true);
    case value_type::int32_or_zero:
      return judge_whole(it, true, false);
    case value_type::int64_or_zero:
      return judge_whole(it, true, true);
    case value_type::decimal:
      return judge_decimal(it);
    case value_type::flag:
      return judge_flag(it, false);
    case value_type::flag_or_false:
      return judge_flag(it, true);
    case value_type::position:
      return judge_position(it);
    case value_type::timestamp:
      return judge_timestamp(it);
    case value_type::retrieval:
      return judge_retrieval(it);
    case value_type::metrics_level:
      return judge_metrics_level(it);
    case value_type::client_version:
      return judge_client_version(it);
    case value_type::billing:
      return judge_billing(it);
    case value_type::uri:
      return judge_uri(it);
    case value_type::region:
      return judge_region(it);
    case value_type::arn:
      return judge_arn(it);
    case value_type::duration:
      return judge_duration(it);
    case value_type::tags:
      return judge_tags(it);
    case value_type::provider:
      return judge_provider(it);
    case value_type::text:
      return judge_text(it);
    case value_type::no_effect:
      return problem{"has no effect in " + std::string(name_of(it.which)),
                     "The daemon takes it and does nothing with it.", "Remove it.",
                     severity::warning};
    case value_type::unusable:
      return problem{"cannot be set in a file", std::string(no_start), "Remove it."};
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

void check_values(const properties& all, generation which, std::vector<finding>& to) {
  for (const property& one : all) {
    if (was_utf8(one.value)) {
      to.push_back(found_at(one, severity::error, one.key + " has letters beyond ASCII, in UTF-8",
                            "The daemon reads the file as ISO-8859-1 and gets other letters.",
                            "Write each as \\u and four hexadecimal digits."));
    }
    const property_row* const row = find_row(one.key, which);
    if (row == nullptr) continue;
    if (auto found = judge({*row, which, one.value})) {
      to.push_back(
          found_at(one, found->level, one.key + " " + found->what, found->why, found->fix));
    }
  }
}

}  // namespace kclxx::launcher
