// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/measurement.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::replay {

using protocol::action_kind;

void measurement::begin(const script::action& next, std::uint64_t records, time now) {
  if (!began_) began_ = now;
  started_at_ = now;
  to_.counts.line_bytes += next.line().size() + 1;
  if (keeps_timeline_ && next.content.position && next.kind == action_kind::process_records) {
    to_.timeline.deliver(*next.content.position, records);
  }
}

void measurement::on_answered(bool failed, const sequence_position& persisted) {
  ++to_.counts.checkpoints_answered;
  if (failed) ++to_.counts.checkpoints_failed;
  if (!keeps_timeline_) return;
  to_.timeline.add_checkpoint(failed);
  to_.timeline.persist(persisted);
}

void measurement::on_returned(const script::action& current, time now) {
  if (!to_.first_status) to_.first_status = now;
  to_.last_status = now;
  // A status before the line was written took no time.
  const auto callback = std::max<std::chrono::nanoseconds>(now - sent_at_, {});
  if (current.content.kind == transcript::line_kind::process_records) {
    to_.counts.callbacks.add(callback);
    ++to_.counts.batches;
    to_.counts.records += current.content.records;
    to_.counts.data_bytes += current.content.data_bytes;
  }
  if (keeps_timeline_) add_span(current, callback, now);
}

void measurement::add_span(const script::action& current, std::chrono::nanoseconds callback,
                           time now) {
  span interval{current.name};
  interval.repeats = current.kind == action_kind::process_records;
  interval.begin = started_at_ - *began_;
  interval.end = now - *began_;
  if (interval.repeats) interval.callback = callback;
  interval.behind = current.content.millis_behind_latest;
  to_.timeline.add(std::move(interval));
}

}  // namespace kclxx::replay
