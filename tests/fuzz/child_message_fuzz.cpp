// SPDX-License-Identifier: Apache-2.0
// A child may write any bytes: each line is a message or is ignored, and nothing is thrown. What
// carries no meaning for the daemon changes nothing, and the daemon model takes all of it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon_model/lines.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "fuzz/expect.hpp"

namespace {

using namespace kclxx;

/// The line as the answer to each kind of call.
void answer_with(std::string_view line) {
  using protocol::action_kind;
  daemon_model::lease row(sequence_position("TRIM_HORIZON"));
  daemon_model::shard_consumer consumer(row);
  daemon_model::daemon_events all;
  consumer.call(action_kind::initialize, "initialize", std::nullopt, all);
  consumer.on_line(line, all);
  if (consumer.can_call(action_kind::process_records)) {
    consumer.call(action_kind::process_records, "processRecords", sequence_position("7"), all);
    consumer.on_line(line, all);
  }
  for (const daemon_model::daemon_event& one : all) static_cast<void>(to_string(one));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string line(reinterpret_cast<const char*>(data), size);
  answer_with(line);
  if (line.find_first_of("\r\n") != std::string::npos) return 0;
  const daemon_model::child_message read = daemon_model::parse_child_message(line);
  static_cast<void>(to_string(read));
  expect(daemon_model::parse_child_message(line + "\r") == read, "a carriage return ends the line");
  // The short cut for a plain status reads what the parser reads.
  if (line.starts_with('{')) {
    expect(daemon_model::parse_child_message(" " + line) == read,
           "a space before it changes nothing");
  }
  return 0;
}
