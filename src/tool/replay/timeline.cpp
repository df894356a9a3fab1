// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/timeline.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::replay {

// The later position of a group is used for all of it: nothing counts as persisted that is not.
void timeline::deliver(const sequence_position& largest, std::uint64_t records) {
  delivered_ = records;
  if (unpersisted_.empty()) group_size_ = 1;
  if (!unpersisted_.empty() && unpersisted_.back().members < group_size_) {
    unpersisted_.back() = {largest, records, unpersisted_.back().members + 1};
    return;
  }
  unpersisted_.push_back({largest, records, 1});
  if (unpersisted_.size() <= most_spans) return;
  group_size_ *= 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < unpersisted_.size(); ++i) {
    group merged = unpersisted_[i];
    if (i + 1 < unpersisted_.size()) {
      const std::uint64_t members = merged.members;
      merged = unpersisted_[++i];
      merged.members += members;
    }
    unpersisted_[kept++] = merged;
  }
  unpersisted_.erase(unpersisted_.begin() + static_cast<std::ptrdiff_t>(kept), unpersisted_.end());
}

void timeline::persist(const sequence_position& position) {
  while (!unpersisted_.empty() && unpersisted_.front().largest <= position) {
    persisted_ = unpersisted_.front().records;
    unpersisted_.pop_front();
  }
}

void timeline::add_checkpoint(bool failed) noexcept {
  ++checkpoints_;
  if (failed) ++failed_;
}

void timeline::add(span interval) {
  interval.delivered = delivered_;
  interval.persisted = persisted_;
  interval.checkpoints = std::exchange(checkpoints_, 0);
  interval.failed_checkpoints = std::exchange(failed_, 0);
  if (can_join(interval) && spans_.back().batches < batches_each_) {
    join(spans_.back(), interval);
    return;
  }
  spans_.push_back(std::move(interval));
  if (spans_.size() > most_spans) downsample();
}

bool timeline::can_join(const span& interval) const noexcept {
  return interval.repeats && !spans_.empty() && spans_.back().repeats;
}

void timeline::join(span& first, const span& next) {
  first.end = next.end;
  first.batches += next.batches;
  first.callback = std::max(first.callback, next.callback);
  first.behind = std::max(first.behind, next.behind);
  first.delivered = next.delivered;
  first.persisted = next.persisted;
  first.checkpoints += next.checkpoints;
  first.failed_checkpoints += next.failed_checkpoints;
}

// Each two neighbours that can come any number of times become one, and so do those to come: all
// parts of the course are kept with the same care.
void timeline::downsample() {
  batches_each_ *= 2;
  const std::vector<span> all = std::exchange(spans_, {});
  for (const span& interval : all) {
    if (can_join(interval) && spans_.back().batches + interval.batches <= batches_each_) {
      join(spans_.back(), interval);
    } else {
      spans_.push_back(interval);
    }
  }
}

}  // namespace kclxx::replay
