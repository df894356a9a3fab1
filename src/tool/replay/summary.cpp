// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/summary.hpp"

#include <algorithm>
#include <cmath>
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

namespace {

std::string ending(int status, int signal) {
  return signal != 0 ? "signal " + std::to_string(signal) : "exit status " + std::to_string(status);
}

}  // namespace

void verdict::breach(std::string message, std::string_view child_line) {
  summary_.breaches.add(line_, std::move(message), child_line);
}

void verdict::damage(std::size_t transcript_line, std::string message) {
  if (!summary_.damage) summary_.damage = diagnostic{transcript_line, std::move(message), {}};
}

void verdict::fail(std::string reason) {
  if (!summary_.failure) summary_.failure = diagnostic{line_, std::move(reason), {}};
}

void verdict::on_lost_line(std::string_view line) {
  if (!is_end_explained()) breach("nobody reads this line: it came after the last status", line);
}

void verdict::on_worker_ended(const std::string& reason, std::string_view child_line) {
  worker_ended_ = true;
  if (output_ended_) {
    fail(reason);
  } else if (!was_killed_) {
    breach(reason + "; the daemon ends the whole worker", child_line);
  }
}

void verdict::on_exit(int status, int signal) {
  const bool is_success = status == 0 && signal == 0;
  if (output_ended_ && summary_.failure && !was_killed_) {
    summary_.failure->what += ", " + ending(status, signal);
  } else if (!is_success && !is_end_explained() && !was_killed_) {
    fail("the child left with " + ending(status, signal));
  }
}

void verdict::compare_exit(int status, int signal, const transcript::entry& recorded) {
  if (is_deliberate_) return;
  const bool was_signal = recorded.kind == transcript::entry_kind::killed;
  const std::string was =
      ending(was_signal ? 0 : recorded.number, was_signal ? recorded.number : 0);
  const std::string is = ending(status, signal);
  if (was == is) return;
  summary_.differences.add(recorded.line_number,
                           "recorded was " + was + ", but the child left with " + is);
}

}  // namespace kclxx::replay
