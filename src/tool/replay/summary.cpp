// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/summary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kclxx::replay {

void timeline::deliver(const sequence_position& largest, std::uint64_t records) {
  delivered_ = records;
  unpersisted_.emplace_back(largest, records);
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

void timeline::add(span interval) {
  interval.delivered = delivered_;
  interval.persisted = persisted_;
  interval.checkpoints = std::exchange(checkpoints_, 0);
  interval.failed_checkpoints = std::exchange(failed_, 0);
  spans_.push_back(std::move(interval));
}

std::vector<span> timeline::spans(std::size_t most) const {
  const std::size_t together = (spans_.size() + most - 1) / most;
  std::vector<span> all;
  for (const span& next : spans_) {
    const bool joins =
        next.repeats && !all.empty() && all.back().repeats && all.back().batches < together;
    if (!joins) {
      all.push_back(next);
      continue;
    }
    span& first = all.back();
    first.end = next.end;
    ++first.batches;
    first.callback = std::max(first.callback, next.callback);
    first.behind = std::max(first.behind, next.behind);
    first.delivered = next.delivered;
    first.persisted = next.persisted;
    first.checkpoints += next.checkpoints;
    first.failed_checkpoints += next.failed_checkpoints;
  }
  return all;
}

void diagnostics::add(std::size_t transcript_line, std::string message,
                      std::string_view child_line) {
  constexpr std::size_t most_shown = 200;
  ++count_;
  if (first_.size() == most_kept) return;
  std::string shown(child_line.substr(0, most_shown));
  if (child_line.size() > most_shown) shown += "...";
  first_.push_back({transcript_line, std::move(message), std::move(shown)});
}

void durations::add(std::chrono::nanoseconds one) {
  all_.push_back(std::max(one, std::chrono::nanoseconds(0)));
}

void durations::add(const durations& other) {
  all_.insert(all_.end(), other.all_.begin(), other.all_.end());
}

std::chrono::nanoseconds durations::quantile(double part) const {
  if (all_.empty()) return {};
  auto sorted = all_;
  const auto at = static_cast<std::ptrdiff_t>(std::ceil(part * static_cast<double>(count()))) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  return sorted[static_cast<std::size_t>(at)];
}

void totals::add(const totals& other) {
  records += other.records;
  data_bytes += other.data_bytes;
  line_bytes += other.line_bytes;
  batches += other.batches;
  checkpoints_asked += other.checkpoints_asked;
  checkpoints_answered += other.checkpoints_answered;
  checkpoints_failed += other.checkpoints_failed;
  successors += other.successors;
  callbacks.add(other.callbacks);
}

}  // namespace kclxx::replay
