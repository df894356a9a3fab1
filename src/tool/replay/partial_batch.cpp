// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/partial_batch.hpp"

#include <cstdint>
#include <deque>
#include <variant>
#include <vector>

#include "daemon_model/lines.hpp"
#include "protocol/decoder.hpp"

namespace kclxx::replay {

std::optional<partial_batch> batch_after(std::string_view line,
                                         const sequence_position& persisted) {
  std::string memory(line);
  memory.append(protocol::decoder::padding, '\0');
  std::vector<record> records;
  std::deque<std::string> arena;
  bool has_replaced_utf8 = false;
  const auto decoded =
      protocol::decoder().decode(memory.data(), line.size(), records, arena, has_replaced_utf8);
  const std::size_t all = records.size();
  std::erase_if(records, [&](const record& one) { return one.position() <= persisted; });
  if (records.size() == all) return std::nullopt;
  const auto& batch =
      std::get<protocol::process_records>(std::get<protocol::message>(decoded).body);
  std::optional<std::int64_t> behind;
  if (batch.millis_behind_latest) behind = batch.millis_behind_latest->count();
  partial_batch rest{daemon_model::process_records_line(records, behind), records.size()};
  for (const record& one : records) rest.data_bytes += one.data().size();
  return rest;
}

}  // namespace kclxx::replay
