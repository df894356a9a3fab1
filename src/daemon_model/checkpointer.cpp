// SPDX-License-Identifier: Apache-2.0
#include "daemon_model/checkpointer.hpp"

#include <cstdint>
#include <string_view>

namespace kclxx::daemon_model {

using outcome = shard_record_processor_checkpointer::outcome;

namespace {

constexpr std::string_view shard_end = "SHARD_END";

/// The KCL's compareTo: one SHARD_END is not after the other, whatever their sub-sequence numbers.
bool is_after(const sequence_position& a, const sequence_position& b) {
  return a > b && !(a.sequence_number() == shard_end && b.sequence_number() == shard_end);
}

/// The KCL's equals: by the text, so that 0101 is not 101.
bool is_same(const sequence_position& a, const sequence_position& b) {
  return a.sequence_number() == b.sequence_number() &&
         a.sub_sequence_number() == b.sub_sequence_number();
}

}  // namespace

outcome shard_record_processor_checkpointer::checkpoint(const child_checkpoint& asked) {
  if (!asked.sequence_number) return advance(largest_permitted_);
  const auto position = permitted(asked);
  if (!position) return {"IllegalArgumentException"};
  return advance(*position);
}

std::optional<sequence_position> shard_record_processor_checkpointer::permitted(
    const child_checkpoint& asked) const {
  const std::int64_t sub = asked.sub_sequence_number.value_or(0);
  if (sub < 0) return std::nullopt;
  // More digits than fit are more than was delivered.
  auto position = sequence_position::parse(*asked.sequence_number, static_cast<std::uint64_t>(sub));
  if (!position) return std::nullopt;
  // 1.x validates first, and knows no other sentinel.
  const bool is_valid = position->is_number() || position->sequence_number() == shard_end;
  if (version_ == kcl::v1 && !is_valid) return std::nullopt;
  if (is_after(last_, *position) || is_after(*position, largest_permitted_)) return std::nullopt;
  return position;
}

outcome shard_record_processor_checkpointer::advance(const sequence_position& position) {
  // The position reached before is passed over, at the shard's end too, where it then does not
  // mean the end (P48).
  if (is_same(position, last_)) return {};
  const bool is_the_end = at_shard_end_ && is_same(position, *at_shard_end_);
  const sequence_position recorded = is_the_end ? sequence_position(shard_end) : position;
  const auto error = lease_.set_checkpoint(recorded);
  if (!error) last_ = recorded;
  return {error, recorded};
}

}  // namespace kclxx::daemon_model
