// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>

#include "tool/daemon/value_rules.hpp"

namespace kclxx::tool {

namespace {

bool is_parsed_at_start(
    const value_context& setting) {  // by Integer.parseInt, whose exception nobody catches
  return setting.row.key == "maxActiveThreads" || setting.row.key == "http.proxyPort";
}

std::optional<value_problem> no_number(const value_context& setting, bool zero_counts,
                                       bool is_wide) {
  value_problem found{
      "is " + setting.quoted() + ", which is not a whole number" + (is_wide ? "" : " of 32 bits"),
      "", "Write digits alone, without a unit, a comment or a blank after them."};
  if (is_parsed_at_start(setting)) {
    found.why = no_start;
  } else if (setting.is(kcl_version::kcl1)) {
    found.why = "The daemon logs a warning, and " + setting.default_stays() + ".";
  } else if (!zero_counts) {
    found.why = "Without a warning, " + setting.default_stays() + ".";
  } else {
    found.why = "The daemon reads it as 0, without a warning.";
  }
  return found;
}

std::optional<value_problem> check_threads(std::int64_t number) {
  if (number <= 0) return std::nullopt;  // as many as are needed
  return value_problem{
      "limits the threads to " + std::to_string(number),
      "A worker with N shards needs 2N + 1. With fewer than N + 2 every shard hangs, "
      "without a line in the log, on the day that the worker takes one shard more.",
      "Remove it.", severity::warning};
}

/// A time that makes no sense in milliseconds: it was meant in seconds.
std::optional<value_problem> check_time(const value_context& setting, std::int64_t number) {
  const bool is_time =
      setting.row.key == "shutdownGraceMillis" || setting.row.key == "failoverTimeMillis";
  if (!is_time || number == 0 || number >= 1000) return std::nullopt;
  return value_problem{
      "is " + std::to_string(number) + ", less than a second", "It is in milliseconds.",
      "Write " + std::to_string(number) + "000, if seconds were meant.", severity::warning};
}

}  // namespace

std::optional<value_problem> check_whole(const value_context& setting, bool zero_counts,
                                         bool is_wide) {
  const bool blanks_matter = setting.is(kcl_version::kcl1) || is_parsed_at_start(setting);
  const auto number = whole_number(blanks_matter ? setting.value : trimmed(setting.value));
  const std::int64_t most = is_wide ? std::numeric_limits<std::int64_t>::max()
                                    : std::int64_t{std::numeric_limits<std::int32_t>::max()};
  if (!number || *number > most || *number < -most - 1)
    return no_number(setting, zero_counts, is_wide);
  if (setting.row.key == "maxActiveThreads") return check_threads(*number);
  if (*number < 0) {
    return value_problem{"is negative",
                         setting.is(kcl_version::kcl1)
                             ? "The daemon logs a warning and keeps the default."
                             : "The daemon accepts it and fails later.",
                         "Write a positive number, or remove it."};
  }
  if (*number == 0 && setting.row.key == "timeoutInSeconds") {
    return value_problem{"is 0",
                         "The daemon does not wait for any answer and halts at its first message.",
                         "Write the longest time that a batch may take, or remove it."};
  }
  if (*number == 0 && !zero_counts && setting.row.default_value != "0") {
    return value_problem{"is 0", "0 counts as not set: " + setting.default_stays() + ".",
                         "Write another number, or remove it."};
  }
  if (setting.row.key == "maxRecords" && *number > 10000) {
    return value_problem{"is more than 10000", "Kinesis refuses requests for more.",
                         "Write 10000 or less."};
  }
  if (setting.row.key == "idleTimeBetweenReadsInMillis" && *number < 200 &&
      setting.is(kcl_version::kcl3)) {
    return value_problem{"is less than 200",
                         "A shard can be read five times a second, so the daemon uses 200.",
                         "Write 200.", severity::warning};
  }
  return check_time(setting, *number);
}

std::optional<value_problem> check_decimal(const value_context& setting) {
  std::string_view text = trimmed(setting.value);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number > 0) return std::nullopt;
  return value_problem{"is " + setting.quoted() + ", which is not a number above 0",
                       "Without a warning, " + setting.default_stays() + ".",
                       "Write a number like 0.5, or remove it."};
}

}  // namespace kclxx::tool
