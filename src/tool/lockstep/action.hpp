// SPDX-License-Identifier: Apache-2.0
// What the daemon asks of a child, ready to be sent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/shard_consumer.hpp"

namespace kclxx::tool {

struct action {
  protocol::action_kind kind;
  std::string name;  ///< which the status must repeat
  std::string line;  ///< without its newline
  std::optional<sequence_position> largest{};
  std::string note{};  ///< what a report adds when it is not answered
};

action initialize_at(std::string_view shard_id, std::string_view sequence_number,
                     std::uint64_t sub_sequence_number);
/// Records with these payloads and sequence numbers counted up from `first`.
action records_of(const std::vector<std::string>& payloads, std::uint64_t first);
/// User records of one aggregated record, with sub-sequence numbers counted up from `first`.
action aggregated_records_of(const std::vector<std::string>& payloads,
                             std::string_view sequence_number, std::size_t first = 0);
/// processRecords with this text for its records and this for millisBehindLatest, for what a
/// daemon's own writer would not write.
action raw_records(std::string_view records, std::uint64_t largest,
                   std::string_view millis_behind_latest = "0");
action shutdown_requested();
action lease_lost();
action shard_ended();
/// The ending of 1.x and 2.0: TERMINATE, SHARD_END, ZOMBIE or LEASE_LOST.
action old_shutdown(std::string_view reason);
action unknown_action();

}  // namespace kclxx::tool
