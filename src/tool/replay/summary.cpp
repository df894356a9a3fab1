// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/summary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kclxx::replay {

void timeline::deliver(const sequence_position& largest, std::uint64_t records) {
  delivered_records_ = records;
  unpersisted_.emplace_back(largest, records);
}

void timeline::persist(const sequence_position& position) {
  while (!unpersisted_.empty() && unpersisted_.front().first <= position) {
    persisted_records_ = unpersisted_.front().second;
    unpersisted_.pop_front();
  }
}

void timeline::add_checkpoint(bool failed) noexcept {
  ++checkpoints_;
  if (failed) ++failed_checkpoints_;
}

void timeline::add(span interval) {
  interval.delivered = delivered_records_;
  interval.persisted = persisted_records_;
  interval.checkpoints = std::exchange(checkpoints_, 0);
  interval.failed_checkpoints = std::exchange(failed_checkpoints_, 0);
  spans_.push_back(std::move(interval));
}

std::vector<span> timeline::spans(std::size_t max_spans) const {
  const std::size_t batches_together = (spans_.size() + max_spans - 1) / max_spans;
  std::vector<span> result;
  for (const span& next : spans_) {
    const bool joins = next.repeats && !result.empty() && result.back().repeats &&
                       result.back().batches < batches_together;
    if (!joins) {
      result.push_back(next);
      continue;
    }
    span& first = result.back();
    first.end = next.end;
    ++first.batches;
    first.callback = std::max(first.callback, next.callback);
    first.behind = std::max(first.behind, next.behind);
    first.delivered = next.delivered;
    first.persisted = next.persisted;
    first.checkpoints += next.checkpoints;
    first.failed_checkpoints += next.failed_checkpoints;
  }
  return result;
}

void diagnostics::add(std::size_t transcript_line, std::string message,
                      std::string_view child_line) {
  constexpr std::size_t max_shown = 200;
  ++count_;
  if (first_.size() == max_kept) return;
  std::string shown(child_line.substr(0, max_shown));
  if (child_line.size() > max_shown) shown += "...";
  first_.push_back({transcript_line, std::move(message), std::move(shown)});
}

void durations::add(std::chrono::nanoseconds duration) {
  kept_.push_back(std::max(duration, std::chrono::nanoseconds(0)));
}

void durations::add(const durations& source) {
  kept_.insert(kept_.end(), source.kept_.begin(), source.kept_.end());
}

std::chrono::nanoseconds durations::quantile(double part) const {
  if (kept_.empty()) return {};
  auto sorted = kept_;
  const auto index =
      static_cast<std::ptrdiff_t>(std::ceil(part * static_cast<double>(count()))) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + index, sorted.end());
  return sorted[static_cast<std::size_t>(index)];
}

void totals::add(const totals& source) {
  records += source.records;
  data_bytes += source.data_bytes;
  line_bytes += source.line_bytes;
  batches += source.batches;
  checkpoints_asked += source.checkpoints_asked;
  checkpoints_answered += source.checkpoints_answered;
  checkpoints_failed += source.checkpoints_failed;
  successors += source.successors;
  callbacks.add(source.callbacks);
}

}  // namespace kclxx::replay
