// SPDX-License-Identifier: Apache-2.0
// Values that have a form.
#include <array>
#include <regex>

#include "tool/daemon/value_rules.hpp"

namespace kclxx::launcher {

namespace {

verdict judge_pattern(const judged& it, const char* pattern, const char* like) {
  if (std::regex_match(it.value.begin(), it.value.end(), std::regex(pattern))) return std::nullopt;
  return problem{"is " + it.quoted() + ", which does not look like " + like,
                 "The daemon does not start, or reaches nothing.",
                 std::string("Write one like ") + like + ", with nothing behind it."};
}

}  // namespace

verdict judge_timestamp(const judged& it) {
  const auto number = whole_number(it.value);
  if (!number) {
    return problem{"is " + it.quoted() + ", which is no number of seconds since 1970",
                   it.is(generation::kcl1) ? "The daemon logs a warning and starts at LATEST."
                                           : std::string(no_start),
                   "Write what date +%s prints."};
  }
  if (*number >= 100'000'000'000) {
    return problem{"looks like milliseconds",
                   "It is in seconds since 1970: this is far in the future.",
                   "Remove the last three digits."};
  }
  return std::nullopt;
}

verdict judge_uri(const judged& it) {
  const bool is_first = it.is(generation::kcl1);  // takes a host alone, too
  return judge_pattern(it, is_first ? "\\S+" : "[Hh][Tt][Tt][Pp][Ss]?://\\S+",
                       "http://127.0.0.1:4568");
}

verdict judge_region(const judged& it) { return judge_pattern(it, "[a-z0-9-]+", "eu-central-1"); }

verdict judge_arn(const judged& it) {
  return judge_pattern(it, "arn:aws[a-z-]*:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[A-Za-z0-9_.-]+",
                       "arn:aws:kinesis:eu-central-1:123456789012:stream/my-stream");
}

verdict judge_duration(const judged& it) {
  return judge_pattern(it,
                       "[-+]?[Pp](?=.)([0-9]+[Dd])?"
                       "([Tt](?=.)([0-9]+[Hh])?([0-9]+[Mm])?([0-9.]+[Ss])?)?",
                       "P1D or PT36H");
}

verdict judge_tags(const judged& it) {
  const char* const pattern = "[^=,]+=[^=,]*(,[^=,]+=[^=,]*)*";
  if (std::regex_match(it.value.begin(), it.value.end(), std::regex(pattern))) return std::nullopt;
  return problem{"is " + it.quoted() + ", which is no list of tags", "The table gets no tags.",
                 "Write name=value,name=value."};
}

// 1.x and 2.x have the names of the AWS SDK 1, 3.x those of the AWS SDK 2.
verdict judge_provider(const judged& it) {
  struct rename {
    std::string_view old_name;
    std::string_view new_name;
  };
  static constexpr std::array<rename, 3> renames{{
      {"DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider"},
      {"SystemPropertiesCredentialsProvider", "SystemPropertyCredentialsProvider"},
      {"EC2ContainerCredentialsProviderWrapper", "ContainerCredentialsProvider"},
  }};
  for (const rename& one : renames) {
    const bool is_third = it.is(generation::kcl3);
    const std::string_view wrong = is_third ? one.old_name : one.new_name;
    if (trimmed(it.value) != wrong) continue;
    return problem{
        "is " + std::string(wrong) + ", which " + std::string(name_of(it.which)) + " does not have",
        "The daemon logs a warning and gets no credentials.",
        "Write " + std::string(is_third ? one.new_name : one.old_name) + "."};
  }
  if (!trimmed(it.value).empty()) return std::nullopt;
  return problem{"is empty", "The daemon gets no credentials.", "Name a credentials provider."};
}

verdict judge_text(const judged& it) {
  if (it.value.empty() || it.row.key == "executableName") return std::nullopt;
  if (it.value.back() != ' ' && it.value.back() != '\t') return std::nullopt;
  return problem{"ends in a blank", "The blank is part of the value; AWS refuses such a name.",
                 "Remove the blank at the end of the line."};
}

}  // namespace kclxx::launcher
