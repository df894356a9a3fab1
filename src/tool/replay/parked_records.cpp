// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/parked_records.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include <nlohmann/json.hpp>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "protocol/base64.hpp"
#include "protocol/message.hpp"

namespace kclxx::replay {

namespace {

using nlohmann::json;

// A line of the daemon stays far below what a child accepts.
constexpr std::size_t most_records = 1000;
constexpr std::size_t most_bytes = std::size_t{8} << 20;

std::optional<std::string> text_or_null(const json& source, const char* key) {
  const auto found = source.find(key);
  if (found == source.end() || found->is_null()) return std::nullopt;
  return found->get<std::string>();
}

std::string decoded(std::string base64) {
  const auto result = protocol::decode_base64(base64.data(), base64.size());
  if (result.error != nullptr) throw std::invalid_argument(std::string("data: ") + result.error);
  base64.resize(result.size);
  return base64;
}

sequence_position position_of(const json& source) {
  const auto text = source.at("sequenceNumber").get<std::string>();
  const auto position =
      sequence_position::parse(text, source.at("subSequenceNumber").get<std::uint64_t>());
  if (!position || !position->is_number()) {
    throw std::invalid_argument("sequenceNumber '" + text + "' is not a number");
  }
  return *position;
}

}  // namespace

void parked_records::add_file(const std::string& name, std::string_view text) {
  std::size_t number = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string place = name + ":" + std::to_string(++number);
    if (line.empty()) continue;
    // After a loss of power a file has zeros where text was to be written.
    line = line.substr(0, line.find_last_not_of('\0') + 1);
    if (line.find('\0') != std::string_view::npos) {
      cut_off_.push_back(place);
      continue;
    }
    try {
      add_line(name, line);
    } catch (const std::exception& error) {
      const auto* parsing = dynamic_cast<const json::parse_error*>(&error);
      if (parsing != nullptr && parsing->byte > line.size()) {  // it ended too early
        cut_off_.push_back(place);
        continue;
      }
      const std::string why = error.what();
      const std::size_t own = why.starts_with("[json.") ? why.find("] ") + 2 : 0;
      throw parked_error(place + ": is not a parked record: " + why.substr(own));
    }
  }
}

void parked_records::add_line(const std::string& file, std::string_view line) {
  const json source = json::parse(line);
  parked one{{}, text_or_null(source, "partitionKey"), {}};
  if (const auto arrival = source.find("approximateArrivalTimestamp"); arrival != source.end()) {
    one.arrival = std::chrono::milliseconds(arrival->get<std::int64_t>());
  }
  const auto position = position_of(source);
  shard& to =
      shards_[{text_or_null(source, "application").value_or(""),
               text_or_null(source, "stream").value_or(""), source.at("shard").get<std::string>()}];
  if (const json& data = source.at("data"); !data.is_null())
    one.data = decoded(data.get<std::string>());
  if (to.files.empty() || to.files.back() != file) to.files.push_back(file);
  to.records.insert_or_assign(position, std::move(one));
}

std::vector<parked_shard> parked_records::shards() const {
  std::vector<parked_shard> all;
  for (const auto& [name, from] : shards_) all.push_back(play(name, from));
  return all;
}

parked_shard parked_records::play(const shard_name& name, const shard& shard) {
  parked_shard result;
  for (const std::string& file : shard.files) {
    result.files += (result.files.empty() ? "" : ", ") + file;
  }
  result.dialogue =
      daemon_model::initialize_line(std::get<2>(name), sequence_position("TRIM_HORIZON")) + "\n";
  std::vector<record> batch;
  std::deque<std::string> numbers;
  std::size_t bytes = 0;
  const auto end_batch = [&] {
    if (batch.empty()) return;
    daemon_model::append_process_records(result.dialogue, batch, 0);
    result.dialogue += '\n';
    batch.clear();
    numbers.clear();
    bytes = 0;
  };
  for (const auto& [position, one] : shard.records) {
    result.positions.push_back(position);
    record::fields fields;
    auto& [data, partition_key, sequence_number, sub_sequence_number, arrival] = fields;
    data = one.data;
    partition_key = one.partition_key;
    sequence_number = numbers.emplace_back(position.sequence_number());
    sub_sequence_number = position.sub_sequence_number();
    arrival = one.arrival;
    batch.emplace_back(fields);
    bytes += one.data ? one.data->size() : 0;
    if (batch.size() == most_records || bytes >= most_bytes) end_batch();
  }
  end_batch();
  result.dialogue += daemon_model::action_line(protocol::action_kind::shutdown_requested) + "\n";
  return result;
}

}  // namespace kclxx::replay
