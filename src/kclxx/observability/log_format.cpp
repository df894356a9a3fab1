// SPDX-License-Identifier: Apache-2.0
#include "observability/log_format.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>

#include "base/names.hpp"
#include "base/printable.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::observability {

namespace {

// Kinesis allows 128 characters; a longer one is no shard of it.
constexpr std::size_t longest_shard_id = 256;

std::optional<log_level> level_of(std::string_view name) {
  for (std::size_t i = 0; i < detail::level_names.size(); ++i) {
    if (name == detail::level_names.at(i)) return static_cast<log_level>(i);
  }
  return std::nullopt;
}

void append_member(std::string& out, const char* name, std::string_view value) {
  out.append(out.empty() ? "{\"" : ",\"").append(name).append("\":");
  protocol::append_quoted(out, value);
}

}  // namespace

std::string to_iso_8601(date time) {
  using namespace std::chrono;
  const auto whole = floor<milliseconds>(time);
  const std::time_t seconds = system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03dZ",
                static_cast<int>((whole.time_since_epoch() % std::chrono::seconds(1)).count()));
  return std::string(text, length) + fraction;
}

std::string text_line(const log_entry& entry) {
  std::string line = "kclxx ";
  if (!entry.shard_id.empty()) line += detail::printable(entry.shard_id, longest_shard_id) + " ";
  line.append(detail::level_name(entry.level)).append(": ");
  return line + detail::printable(entry.text) + "\n";
}

std::string json_line(const log_entry& entry, date time) {
  std::string line;
  append_member(line, "time", to_iso_8601(time));
  append_member(line, "level", detail::level_name(entry.level));
  if (!entry.shard_id.empty()) append_member(line, "shard", entry.shard_id);
  if (entry.position) append_member(line, "position", to_string(*entry.position));
  append_member(line, "message", entry.text);
  return line.append("}\n");
}

std::string read_log_variable(std::string_view value, log_options& options) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view word = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));
    if (const auto level = level_of(word)) {
      options.level = *level;
    } else if (word == "text" || word == "json") {
      options.json = word == "json";
    } else {
      return "KCLXX_LOG: " + detail::quoted(word) +
             " is neither a level (info, warning, error) nor a form (text, json)";
    }
  }
  return {};
}

}  // namespace kclxx::observability
