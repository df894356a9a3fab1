// SPDX-License-Identifier: Apache-2.0
#include "testing/calls.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "protocol/json_string.hpp"

namespace kclxx::testing {

using daemon_model::call_kind;

daemon_model::generation generation(daemon_version version) {
  switch (version) {
    case daemon_version::v1:
      return daemon_model::generation::v1;
    case daemon_version::v2_0:
      return daemon_model::generation::v2;
    case daemon_version::v3:
      break;
  }
  return daemon_model::generation::v3;
}

std::string line_of(call_kind what, daemon_version version) {
  using daemon_model::shutdown_reason;
  if (what == call_kind::shutdown_requested) return daemon_model::shutdown_requested_line();
  const bool is_end = what == call_kind::shard_ended;
  if (version == daemon_version::v2_0) {
    return daemon_model::shutdown_line(is_end ? shutdown_reason::shard_end
                                              : shutdown_reason::lease_lost);
  }
  return is_end ? daemon_model::shard_ended_line(generation(version))
                : daemon_model::lease_lost_line(generation(version));
}

std::string_view action_of(call_kind what, daemon_version version) {
  const bool is_ending = what == call_kind::shard_ended || what == call_kind::lease_lost;
  return is_ending && version != daemon_version::v3 ? "shutdown" : daemon_model::to_string(what);
}

std::string unknown_line(std::string_view action) {
  constexpr std::array<std::string_view, 7> known{"initialize", "processRecords",    "leaseLost",
                                                  "shardEnded", "shutdownRequested", "shutdown",
                                                  "checkpoint"};
  if (std::find(known.begin(), known.end(), action) != known.end()) {
    throw std::invalid_argument("send_unknown_action: " + std::string(action) + " is a known one");
  }
  std::string line = R"({"action":)";
  protocol::append_quoted(line, action);
  return line + "}";
}

}  // namespace kclxx::testing
