// SPDX-License-Identifier: Apache-2.0
// Values that have a form.
#include <regex>

#include "tool/daemon/value_rules.hpp"

namespace kclxx::tool {

namespace {

/// No value of a form is longer. std::regex takes stack for each character.
constexpr std::size_t longest = 4096;

bool matches(std::string_view value, const char* pattern) {
  return value.size() <= longest &&
         std::regex_match(value.begin(), value.end(), std::regex(pattern));
}

std::optional<value_problem> check_pattern(const value_context& setting, const char* pattern,
                                           const char* like) {
  if (matches(setting.value, pattern)) return std::nullopt;
  return value_problem{"is " + setting.quoted() + ", which does not look like " + like,
                       "The daemon does not start, or cannot connect.",
                       std::string("Write one like ") + like + ", with nothing after it."};
}

/// "name=value,name=value": any number of them.
bool are_tags(std::string_view text) {
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view tag = text.substr(0, comma);
    const std::size_t equals = tag.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals != tag.rfind('=')) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<value_problem> check_timestamp(const value_context& setting) {
  const auto number = whole_number(setting.value);
  if (!number) {
    return value_problem{"is " + setting.quoted() + ", which is not a number of seconds since 1970",
                         setting.is(kcl_version::kcl1)
                             ? "The daemon logs a warning and starts at LATEST."
                             : std::string(no_start),
                         "Write a number as date +%s prints it."};
  }
  if (*number >= 100'000'000'000) {
    return value_problem{"looks like milliseconds",
                         "It is in seconds since 1970: this is far in the future.",
                         "Remove the last three digits."};
  }
  return std::nullopt;
}

std::optional<value_problem> check_uri(const value_context& setting) {
  const bool is_first = setting.is(kcl_version::kcl1);  // takes a host alone, too
  if (auto found = check_pattern(setting, is_first ? "\\S+" : "[Hh][Tt][Tt][Pp][Ss]?://\\S+",
                                 "http://127.0.0.1:4568")) {
    return found;
  }
  std::match_results<std::string_view::const_iterator> port;
  const bool has_port = std::regex_search(setting.value.begin(), setting.value.end(), port,
                                          std::regex(":([0-9]+)(/.*)?$"));
  if (!has_port || whole_number(port[1].str()).value_or(65536) <= 65535) return std::nullopt;
  return value_problem{"has the port " + port[1].str(), "There are ports up to 65535.",
                       "Write the endpoint's port."};
}

std::optional<value_problem> check_region(const value_context& setting) {
  if (auto found = check_pattern(setting, "[a-z0-9-]+", "eu-central-1")) return found;
  const char* const pattern =
      "[a-z]+(-[a-z]+)*-(central|((north|south)?(east|west))|north|south)-[0-9]+";
  if (matches(setting.value, pattern)) return std::nullopt;
  return value_problem{"is " + setting.quoted() + ", which looks like no region of AWS",
                       "The daemon cannot connect, unless its endpoints are set.",
                       "Write one like eu-central-1.", severity::warning};
}

std::optional<value_problem> check_arn(const value_context& setting) {
  return check_pattern(setting,
                       "arn:aws[a-z-]*:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[A-Za-z0-9_.-]+",
                       "arn:aws:kinesis:eu-central-1:123456789012:stream/my-stream");
}

std::optional<value_problem> check_duration(const value_context& setting) {
  return check_pattern(setting,
                       "[-+]?[Pp](?=.)([0-9]+[Dd])?"
                       "([Tt](?=.)([0-9]+[Hh])?([0-9]+[Mm])?([0-9.]+[Ss])?)?",
                       "P1D or PT36H");
}

std::optional<value_problem> check_tags(const value_context& setting) {
  if (are_tags(setting.value)) return std::nullopt;
  return value_problem{"is " + setting.quoted() + ", which is not a list of tags",
                       "The table gets no tags.", "Write name=value,name=value."};
}

std::optional<value_problem> check_text(const value_context& setting) {
  if (setting.value.empty() || setting.row.key == "executableName") return std::nullopt;
  if (setting.value.back() == ' ' || setting.value.back() == '\t') {
    return value_problem{"ends in a blank",
                         "The blank is part of the value; AWS refuses such a name.",
                         "Remove the blank at the end of the line."};
  }
  const char first = setting.value.front();
  if (setting.value.size() > 1 && (first == '"' || first == '\'') &&
      setting.value.back() == first) {
    return value_problem{"is in quotes", "The quotes are part of the value.", "Remove them."};
  }
  if (setting.row.key == "streamName" && !matches(setting.value, "[A-Za-z0-9_.-]{1,128}")) {
    return value_problem{"is " + setting.quoted() + ", which cannot name a stream",
                         "The daemon waits for a stream of this name without end.",
                         "Write 1 to 128 of A-Z a-z 0-9 _ . -, with nothing after it."};
  }
  return std::nullopt;
}

}  // namespace kclxx::tool
