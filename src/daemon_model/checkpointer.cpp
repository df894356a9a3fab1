// SPDX-License-Identifier: Apache-2.0
#include "daemon_model/checkpointer.hpp"

#include <cstdint>

namespace kclxx::daemon_model {

using outcome = shard_record_processor_checkpointer::outcome;

outcome shard_record_processor_checkpointer::checkpoint(const child_checkpoint& asked) {
  if (!asked.sequence_number) return advance(largest_permitted_);
  const std::int64_t sub = asked.sub_sequence_number.value_or(0);
  if (sub < 0) return {"IllegalArgumentException"};
  // More digits than fit are more than was delivered.
  const auto position =
      sequence_position::parse(*asked.sequence_number, static_cast<std::uint64_t>(sub));
  if (!position || *position < last_ || *position > largest_permitted_) {
    return {"IllegalArgumentException"};
  }
  return advance(*position);
}

outcome shard_record_processor_checkpointer::advance(const sequence_position& to) {
  // The position reached before is passed over, at the shard's end too, where it then does not
  // stand for the end (D11).
  if (to == last_) return {};
  const sequence_position recorded = to == at_shard_end_ ? sequence_position("SHARD_END") : to;
  const auto error = lease_.set_checkpoint(recorded);
  if (!error) last_ = recorded;
  return {error, recorded};
}

}  // namespace kclxx::daemon_model
