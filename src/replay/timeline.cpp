// SPDX-License-Identifier: Apache-2.0
#include "replay/timeline.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::replay {

void timeline::deliver(const sequence_position& largest, std::uint64_t records) {
  delivered_ = records;
  unpersisted_.emplace_back(largest, records);
  if (unpersisted_.size() <= 2 * most_moments) return;
  // The later of each two stays: nothing counts as persisted that is not.
  std::size_t kept = 0;
  for (std::size_t i = 1; i < unpersisted_.size(); i += 2) unpersisted_[kept++] = unpersisted_[i];
  if (unpersisted_.size() % 2 == 1) unpersisted_[kept++] = unpersisted_.back();
  unpersisted_.erase(unpersisted_.begin() + static_cast<std::ptrdiff_t>(kept), unpersisted_.end());
}

void timeline::persist(const sequence_position& position) {
  while (!unpersisted_.empty() && unpersisted_.front().first <= position) {
    persisted_ = unpersisted_.front().second;
    unpersisted_.pop_front();
  }
}

void timeline::add_checkpoint(bool failed) noexcept {
  ++checkpoints_;
  if (failed) ++failed_;
}

void timeline::add(moment one) {
  one.delivered = delivered_;
  one.persisted = persisted_;
  one.checkpoints = std::exchange(checkpoints_, 0);
  one.failed_checkpoints = std::exchange(failed_, 0);
  moments_.push_back(std::move(one));
  if (moments_.size() > most_moments) thin_out();
}

// Each two neighbours that can come any number of times become one.
void timeline::thin_out() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    moment one = std::move(moments_[i]);
    if (one.repeats && i + 1 < moments_.size() && moments_[i + 1].repeats) {
      const moment& next = moments_[++i];
      one.end = next.end;
      one.callback = std::max(one.callback, next.callback);
      one.behind = std::max(one.behind, next.behind);
      one.delivered = next.delivered;
      one.persisted = next.persisted;
      one.checkpoints += next.checkpoints;
      one.failed_checkpoints += next.failed_checkpoints;
    }
    moments_[kept++] = std::move(one);
  }
  moments_.resize(kept);
}

}  // namespace kclxx::replay
