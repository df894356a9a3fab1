// SPDX-License-Identifier: Apache-2.0
// Headers are the only part of a transcript that is read as JSON.
#include "tool/transcript/header.hpp"

#include <array>
#include <cstddef>
#include <ctime>

#include <nlohmann/json.hpp>

namespace kclxx::transcript {

namespace {

using nlohmann::json;
using ordered = nlohmann::ordered_json;

// A header or an initialize is small; a first line beyond this can only be one of records.
constexpr std::size_t max_parsed = std::size_t{1} << 20;
constexpr std::string_view action_first = R"({"action")";

not_a_transcript wrong(const std::string& field, const char* should_be) {
  return {"the header's \"" + field + "\" is not " + should_be};
}

first_line parse_header(const json& value) {
  const json& version = value.at("kclxx_transcript");
  if (version != format_version) {
    return not_a_transcript{"is of version " + version.dump(-1, ' ', true) +
                            "; this kclxx reads version " + std::to_string(format_version)};
  }
  header result;
  const json shard = value.value("shard", json());
  if (!shard.is_null() && !shard.is_string()) return wrong("shard", "a string or null");
  if (shard.is_string()) result.shard = shard.get<std::string>();
  const json started = value.value("started", json());
  if (!started.is_string()) return wrong("started", "a string");
  result.started = started.get<std::string>();
  const json command = value.value("command", json());
  if (!command.is_array()) return wrong("command", "a list of strings");
  for (const json& one : command) {
    if (!one.is_string()) return wrong("command", "a list of strings");
    result.command.push_back(one.get<std::string>());
  }
  return result;
}

}  // namespace

std::string to_line(const header& header) {
  ordered line;
  line["kclxx_transcript"] = format_version;
  line["shard"] = header.shard ? ordered(*header.shard) : ordered();
  line["started"] = header.started;
  line["command"] = header.command;
  return line.dump(-1, ' ', false, ordered::error_handler_t::replace);
}

first_line parse_first_line(std::string_view line) {
  if (line.starts_with(action_first) && line.back() == '}') return daemon_lines_only{};
  const not_a_transcript unknown{
      "is neither a transcript's header nor a line of the daemon (an object with \"action\")"};
  if (line.size() > max_parsed) return unknown;
  const json value = json::parse(line, nullptr, false);
  if (!value.is_object()) return unknown;
  if (value.contains("kclxx_transcript")) return parse_header(value);
  if (value.contains("action")) return daemon_lines_only{};
  return unknown;
}

std::string format_time(std::chrono::system_clock::time_point at) {
  using namespace std::chrono;
  const auto since = duration_cast<microseconds>(at.time_since_epoch());
  const auto whole = floor<seconds>(since);
  const std::time_t time = whole.count();
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string micros = std::to_string((since - whole).count());
  micros.insert(0, 6 - micros.size(), '0');
  return std::string(text.data(), length) + "." + micros + "Z";
}

std::optional<std::string> initialized_shard(std::string_view line) {
  if (line.size() > max_parsed) return std::nullopt;
  const json value = json::parse(line, nullptr, false);
  if (!value.is_object() || value.value("action", json()) != "initialize") return std::nullopt;
  const json shard = value.value("shardId", json());
  if (!shard.is_string()) return std::nullopt;
  return shard.get<std::string>();
}

}  // namespace kclxx::transcript
