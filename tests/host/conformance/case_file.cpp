// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "host/conformance/script.hpp"

namespace kclxx::oracle {

using nlohmann::json;
using protocol::action_kind;

namespace {

/// NUMBER or NUMBER/SUB.
std::pair<std::string, std::optional<std::int64_t>> split_position(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return {text, std::nullopt};
  std::int64_t sub = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + slash + 1, end, sub).ptr != end) {
    throw std::runtime_error("'" + text + "' is no position");
  }
  return {text.substr(0, slash), sub};
}

action_kind kind_of(const std::string& name) {
  for (const action_kind kind :
       {action_kind::initialize, action_kind::process_records, action_kind::lease_lost,
        action_kind::shard_ended, action_kind::shutdown_requested}) {
    if (name == protocol::action_name(kind)) return kind;
  }
  throw std::runtime_error("'" + name + "' is no call");
}

/// "initialize POSITION", "processRecords POSITION...", or the bare name of another.
call read_call(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  words >> word;
  call result{.kind = kind_of(word), .millis_behind_latest = 0};
  if (result.kind == action_kind::initialize) {
    words >> word;
    const auto [number, sub] = split_position(word);
    result.shard_id = "shardId-000000000000";
    result.sequence_number = number;
    result.sub_sequence_number = static_cast<std::uint64_t>(sub.value_or(0));
  }
  while (result.kind == action_kind::process_records && words >> word) {
    const auto [number, sub] = split_position(word);
    result.records.push_back({.data = "aGVsbG8=",
                              .partition_key = "key",
                              .sequence_number = number,
                              .sub_sequence_number = static_cast<std::uint64_t>(sub.value_or(0)),
                              .arrival = 1700000000123});
  }
  return result;
}

std::string child_line(const std::string& text) {
  const std::size_t space = text.find(' ');
  const std::string operand = space == std::string::npos ? "" : text.substr(space + 1);
  if (text.starts_with("status ")) return status_line(protocol::action_name(kind_of(operand)));
  if (text == "checkpoint null") return checkpoint_line(std::nullopt, std::nullopt);
  if (text.starts_with("checkpoint ")) {
    const auto [number, sub] = split_position(operand);
    return checkpoint_line(number, sub);
  }
  throw std::runtime_error("'" + text + "' is nothing that a child does");
}

/// The bytes of a JSON string that has a character, up to U+00FF, for each.
/// Errors: std::runtime_error for another character.
std::string bytes_from_characters(const std::string& characters) {
  std::string result;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const auto byte = static_cast<unsigned char>(characters[i]);
    if (byte < 0x80) {
      result += characters[i];
    } else if (byte <= 0xc3 && i + 1 < characters.size()) {
      result += static_cast<char>((byte & 3) << 6 | (characters[++i] & 0x3f));
    } else {
      throw std::runtime_error("bytes are written as characters up to U+00FF");
    }
  }
  return result;
}

std::vector<turn> read_turns(const json& pieces) {
  std::vector<turn> turns(1);
  for (const json& piece : pieces) {
    if (piece == "await") {
      turns.emplace_back();
    } else if (piece == "end") {
      turns.back().end = true;
    } else if (piece.is_object()) {
      turns.back().write += bytes_from_characters(piece.at("bytes").get<std::string>());
    } else {
      turns.back().write += "\n" + child_line(piece.get<std::string>()) + "\n";
    }
  }
  return turns;
}

script read_case(const json& source) {
  script result{.name = source.at("name")};
  for (const json& text : source.at("calls")) result.calls.push_back(read_call(text));
  for (const json& pieces : source.at("child")) result.child.push_back(read_turns(pieces));
  result.store = source.value("store", std::vector<std::string>());
  return result;
}

/// A line in the place where a batch's checkpoint would be: the status after it shows whether
/// the daemon continued.
script line_case(const std::string& line) {
  json source{{"name", "the line " + line}};
  source["calls"] = {"initialize TRIM_HORIZON", "processRecords 101 101/1 102"};
  source["child"] = {{"status initialize"}, {{{"bytes", line + "\n"}}, "status processRecords"}};
  return read_case(source);
}

}  // namespace

std::vector<script> read_cases(const std::filesystem::path& file) {
  std::vector<script> result;
  std::string at;
  try {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("cannot be read");
    const json content = json::parse(in);
    for (const json& item : content.value("cases", json::array())) {
      at = ": " + item.value("name", "a case without a name");
      result.push_back(read_case(item));
    }
    for (const json& line : content.value("lines", json::array())) {
      at = ": " + line.dump();
      result.push_back(line_case(line));
    }
  } catch (const std::exception& e) {
    throw std::runtime_error(file.string() + at + ": " + e.what());
  }
  return result;
}

}  // namespace kclxx::oracle
