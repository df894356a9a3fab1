// SPDX-License-Identifier: Apache-2.0
#include "children/broken_input.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "protocol/utf8.hpp"

namespace kclxx::test {

namespace {

struct input {
  const json& message;
  std::string_view line;
  bool is_after_shutdown_requested;

  [[nodiscard]] bool is(std::string_view action) const { return message.at("action") == action; }
  [[nodiscard]] bool is_shutdown(std::string_view reason) const {
    return is("shutdown") && message.at("reason") == reason;
  }
  [[nodiscard]] json records() const { return message.value("records", json::array()); }
  template <class Predicate>
  [[nodiscard]] bool any_record(Predicate holds) const {
    const json all = records();
    return std::any_of(all.begin(), all.end(), holds);
  }
  [[nodiscard]] bool any_null(const char* field) const {
    return any_record([&](const json& one) { return one.value(field, json(0)).is_null(); });
  }
  [[nodiscard]] bool is_batch_without(const char* field) const {
    return is("processRecords") && !message.contains(field);
  }
  [[nodiscard]] bool has(std::string_view text) const {
    return line.find(text) != std::string_view::npos;
  }
};

using trap = std::function<bool(const input&)>;

const std::map<std::string_view, trap>& traps() {
  static const std::map<std::string_view, trap> all{
      {"initialize", [](const input& input) { return input.is("initialize"); }},
      {"initial-positions",
       [](const input& input) {
         return input.message.value("sequenceNumber", json()) == "LATEST";
       }},
      {"one-record", [](const input& input) { return input.records().size() == 1; }},
      {"empty-batch",
       [](const input& input) { return input.is("processRecords") && input.records().empty(); }},
      {"many-records", [](const input& input) { return input.records().size() > 1000; }},
      {"long-line", [](const input& input) { return input.line.size() > 10'000'000; }},
      {"large-record",
       [](const input& input) {
         return input.any_record([](const json& record) {
           const json data = record.value("data", json());
           return data.is_string() && data.get_ref<const std::string&>().size() > 2'800'000;
         });
       }},
      {"aggregated-records",
       [](const input& input) {
         return input.any_record(
             [](const json& one) { return one.value("subSequenceNumber", 0) > 0; });
       }},
      {"long-line-in-pieces",
       [](const input& input) { return input.line.size() > 50'000 && input.has("\u30ad"); }},
      {"empty-data",
       [](const input& input) {
         return input.any_record([](const json& one) { return one.value("data", json()) == ""; });
       }},
      {"line-separators", [](const input& input) { return input.has("\u2028"); }},
      {"long-lag",
       [](const input& input) {
         const json behind = input.message.value("millisBehindLatest", json());
         return behind.is_number() && behind > std::int64_t{1} << 31;
       }},
      {"unknown-fields-in-ending",
       [](const input& input) { return input.message.contains("checkpoint"); }},
      {"shutdown-requested", [](const input& input) { return input.is("shutdownRequested"); }},
      {"lease-lost", [](const input& input) { return input.is("leaseLost"); }},
      {"shard-ended", [](const input& input) { return input.is("shardEnded"); }},
      {"hand-off", [](const input& input) { return input.is_after_shutdown_requested; }},
      {"old-terminate", [](const input& input) { return input.is_shutdown("TERMINATE"); }},
      {"old-shard-end", [](const input& input) { return input.is_shutdown("SHARD_END"); }},
      {"old-zombie", [](const input& input) { return input.is_shutdown("ZOMBIE"); }},
      {"old-lease-lost", [](const input& input) { return input.is_shutdown("LEASE_LOST"); }},
      {"unknown-action-goes-on", [](const input& input) { return input.has("tomorrowsAction"); }},
      {"null-position",
       [](const input& input) {
         return input.is("initialize") && input.message.at("sequenceNumber").is_null();
       }},
      {"null-data", [](const input& input) { return input.any_null("data"); }},
      {"null-partition-key", [](const input& input) { return input.any_null("partitionKey"); }},
      {"null-arrival-time",
       [](const input& input) { return input.any_null("approximateArrivalTimestamp"); }},
      {"null-millis-behind",
       [](const input& input) {
         return input.message.value("millisBehindLatest", json(0)).is_null();
       }},
      {"missing-fields",
       [](const input& input) { return input.is_batch_without("millisBehindLatest"); }},
      {"floating-point-times",
       [](const input& input) {
         return input.message.value("millisBehindLatest", json(0)).is_number_float();
       }},
      {"unknown-fields", [](const input& input) { return input.message.contains("tomorrow"); }},
      {"unknown-objects",
       [](const input& input) {
         return input.message.value("pendingCheckpoint", json()).is_object();
       }},
      {"field-order", [](const input& input) { return !input.line.starts_with("{\"action\""); }},
      {"escaped-text", [](const input& input) { return input.has("\\u00e9"); }},
      {"non-ascii-text", [](const input& input) { return input.has("\u30ad"); }},
      {"invalid-utf8", [](const input& input) { return valid_text(input.line) != input.line; }},
  };
  return all;
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
  const auto found = traps().find(rule);
  return found != traps().end() && found->second({message, line, is_after_shutdown_requested});
}

}  // namespace kclxx::test
