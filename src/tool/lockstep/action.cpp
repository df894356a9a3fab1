// SPDX-License-Identifier: Apache-2.0
#include "tool/lockstep/action.hpp"

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "protocol/message.hpp"

namespace kclxx::tool {

namespace {

using protocol::action_kind;

constexpr std::int64_t millis_behind_latest = 1200;
constexpr std::chrono::milliseconds arrival{1'700'000'000'000};

action records_action(const std::vector<record>& all) {
  action batch{action_kind::process_records, "processRecords",
               daemon_model::process_records_line(all, millis_behind_latest)};
  if (!all.empty()) batch.largest = all.back().position();
  return batch;
}

action action_of(action_kind kind) {
  return {kind, protocol::action_name(kind), daemon_model::action_line(kind)};
}

}  // namespace

action initialize_at(std::string_view shard_id, std::string_view sequence_number,
                     std::uint64_t sub_sequence_number) {
  return {action_kind::initialize, "initialize",
          daemon_model::initialize_line(shard_id,
                                        sequence_position(sequence_number, sub_sequence_number))};
}

action records_of(const std::vector<std::string>& payloads, std::uint64_t first) {
  std::vector<std::string> numbers;
  numbers.reserve(payloads.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) numbers.push_back(std::to_string(first + i));
  std::vector<record> all;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    all.emplace_back(record::fields{payloads[i], "key", numbers[i], 0, arrival});
  }
  return records_action(all);
}

action aggregated_records_of(const std::vector<std::string>& payloads,
                             std::string_view sequence_number, std::size_t first) {
  std::vector<record> all;
  for (const std::string& payload : payloads) {
    all.emplace_back(record::fields{payload, "key", sequence_number, first + all.size(), arrival});
  }
  return records_action(all);
}

action raw_records(std::string_view records, std::uint64_t largest,
                   std::string_view millis_behind) {
  std::string line = R"({"action":"processRecords","records":[)";
  line.append(records).append("],\"millisBehindLatest\":").append(millis_behind).append("}");
  return {action_kind::process_records, "processRecords", std::move(line),
          sequence_position(std::to_string(largest))};
}

action shutdown_requested() { return action_of(action_kind::shutdown_requested); }
action lease_lost() { return action_of(action_kind::lease_lost); }
action shard_ended() { return action_of(action_kind::shard_ended); }

action old_shutdown(std::string_view reason) {
  return {
      protocol::is_shard_end(reason).value() ? action_kind::shard_ended : action_kind::lease_lost,
      "shutdown", R"({"action":"shutdown","reason":")" + std::string(reason) + "\"}"};
}

action unknown_action() {
  // To the model it is a batch without records: a checkpoint would be answered as there.
  return {action_kind::process_records, "tomorrowsAction",
          R"({"action":"tomorrowsAction","level":1})"};
}

}  // namespace kclxx::tool
