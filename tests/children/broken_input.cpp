// SPDX-License-Identifier: Apache-2.0
#include "children/broken_input.hpp"

#include <algorithm>
#include <cstdint>

#include "protocol/json_string.hpp"

namespace kclxx::test {

namespace {

bool is_null(const json& object, const char* field) {
  return object.value(field, json(0)).is_null();
}

bool is_larger_than_2_mib(const json& record) {
  const json data = record.value("data", json());
  return data.is_string() && data.get_ref<const std::string&>().size() > 2'800'000;
}

}  // namespace

std::string valid_text(std::string_view line) {
  std::string text = protocol::replace_invalid_utf8(line);
  const std::string_view high = R"(\ud8)";
  for (auto at = text.find(high); at != std::string::npos; at = text.find(high, at + 1)) {
    const bool is_pair = text.compare(at + 6, 3, R"(\ud)") == 0;
    if (!is_pair) text.replace(at, 6, R"(\ufffd)");
  }
  return text;
}

bool trips_over(std::string_view rule, const json& message, std::string_view line,
                bool is_after_shutdown_requested) {
  static const json none = json::array();
  const auto found = message.find("records");
  const json& records = found == message.end() ? none : *found;
  const auto is = [&](std::string_view action) { return message.at("action") == action; };
  const auto is_shutdown = [&](std::string_view reason) {
    return is("shutdown") && message.at("reason") == reason;
  };
  const auto any_record = [&](const auto& holds) {
    return std::any_of(records.begin(), records.end(), holds);
  };
  const auto any_null = [&](const char* field) {
    return any_record([&](const json& one) { return is_null(one, field); });
  };
  const auto has = [&](std::string_view text) { return line.find(text) != line.npos; };
  const json behind = message.value("millisBehindLatest", json(0));

  if (rule == "initialize") return is("initialize");
  if (rule == "initial-positions") return message.value("sequenceNumber", json()) == "LATEST";
  if (rule == "one-record") return records.size() == 1;
  if (rule == "empty-batch") return is("processRecords") && records.empty();
  if (rule == "many-records") return records.size() > 1000;
  if (rule == "long-line") return line.size() > 10'000'000;
  if (rule == "large-record") return any_record(is_larger_than_2_mib);
  if (rule == "aggregated-records") {
    return any_record([](const json& one) { return one.value("subSequenceNumber", 0) > 0; });
  }
  if (rule == "long-line-in-pieces") return line.size() > 50'000 && has("\u30ad");
  if (rule == "empty-data") {
    return any_record([](const json& one) { return one.value("data", json()) == ""; });
  }
  if (rule == "line-separators") return has("\u2028");
  if (rule == "long-lag") return behind.is_number() && behind > std::int64_t{1} << 31;
  if (rule == "unknown-fields-in-ending") return message.contains("checkpoint");
  if (rule == "shutdown-requested") return is("shutdownRequested");
  if (rule == "lease-lost") return is("leaseLost");
  if (rule == "shard-ended") return is("shardEnded");
  if (rule == "hand-off") return is_after_shutdown_requested;
  if (rule == "old-terminate") return is_shutdown("TERMINATE");
  if (rule == "old-shard-end") return is_shutdown("SHARD_END");
  if (rule == "old-zombie") return is_shutdown("ZOMBIE");
  if (rule == "old-lease-lost") return is_shutdown("LEASE_LOST");
  if (rule == "unknown-action-goes-on") return has("tomorrowsAction");
  if (rule == "null-position") return is("initialize") && message.at("sequenceNumber").is_null();
  if (rule == "null-data") return any_null("data");
  if (rule == "null-partition-key") return any_null("partitionKey");
  if (rule == "null-arrival-time") return any_null("approximateArrivalTimestamp");
  if (rule == "null-millis-behind") return behind.is_null();
  if (rule == "missing-fields") {
    return is("processRecords") && !message.contains("millisBehindLatest");
  }
  if (rule == "floating-point-times") return behind.is_number_float();
  if (rule == "unknown-fields") return message.contains("tomorrow");
  if (rule == "unknown-objects") return message.value("pendingCheckpoint", json()).is_object();
  if (rule == "field-order") return !line.starts_with("{\"action\"");
  if (rule == "escaped-text") return has("\\u00e9");
  if (rule == "non-ascii-text") return has("\u30ad");
  if (rule == "invalid-utf8") return valid_text(line) != line;
  return false;
}

}  // namespace kclxx::test
