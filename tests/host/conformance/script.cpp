// SPDX-License-Identifier: Apache-2.0
#include "host/conformance/script.hpp"

namespace kclxx::oracle {

using nlohmann::json;
using protocol::action_kind;

namespace {

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json to_json(const call& from) {
  json result{{"call", protocol::action_name(from.kind)}};
  if (from.kind == action_kind::initialize) {
    result["shardId"] = from.shard_id;
    result["sequenceNumber"] = from.sequence_number;
    result["subSequenceNumber"] = from.sub_sequence_number;
  } else if (from.kind == action_kind::process_records) {
    result["millisBehindLatest"] = or_null(from.millis_behind_latest);
    json& records = result["records"] = json::array();
    for (const record_fields& fields : from.records) {
      records.push_back({{"data", or_null(fields.data)},
                         {"partitionKey", or_null(fields.partition_key)},
                         {"sequenceNumber", fields.sequence_number},
                         {"subSequenceNumber", fields.sub_sequence_number},
                         {"approximateArrivalTimestamp", or_null(fields.arrival)}});
    }
  }
  return result;
}

/// A JSON string that has a character for each byte.
std::string as_characters(std::string_view bytes) {
  std::string result;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result += c;
    } else {
      result += static_cast<char>(0xc0 | byte >> 6);
      result += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return result;
}

}  // namespace

std::string status_line(std::string_view action) {
  return R"({"action":"status","responseFor":")" + std::string(action) + "\"}";
}

std::string checkpoint_line(const std::optional<std::string>& sequence_number,
                            std::optional<std::int64_t> sub_sequence_number) {
  return R"({"action":"checkpoint","sequenceNumber":)" + or_null(sequence_number).dump() +
         R"(,"subSequenceNumber":)" + or_null(sub_sequence_number).dump() + "}";
}

json to_json(const script& script) {
  json result{{"store", script.store}};
  json& calls = result["calls"] = json::array();
  for (const call& entry : script.calls) calls.push_back(to_json(entry));
  json& child = result["child"] = json::array();
  for (const auto& turns : script.child) {
    json& list = child.emplace_back(json::array());
    for (const turn& turn : turns) {
      list.push_back({{"write", as_characters(turn.write)}, {"end", turn.end}});
    }
  }
  return result;
}

}  // namespace kclxx::oracle
