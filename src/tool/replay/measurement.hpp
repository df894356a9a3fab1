// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <kclxx/sequence_position.hpp>

#include "tool/replay/script.hpp"
#include "tool/replay/summary.hpp"

namespace kclxx::replay {

/// Counts and times what the children of a shard do with the actions that it gets.
///
/// Pure. Thread safety: none. Lifetime: the summary outlives it.
class measurement {
 public:
  using time = std::chrono::steady_clock::time_point;

  measurement(summary& result, bool keeps_timeline)
      : to_(result), keeps_timeline_(keeps_timeline) {}

  /// The line of the shard's action goes out; `records` are in its batches up to this one.
  void begin(const script::action& next, std::uint64_t records, time now);
  void on_sent(time now) noexcept { sent_at_ = now; }
  void on_asked() noexcept { ++to_.counts.checkpoints_asked; }
  void on_answered(bool failed, const sequence_position& persisted);
  /// The status of the action that was begun last is there.
  void on_returned(const script::action& current, time now);

  /// When the first action of the shard was begun.
  [[nodiscard]] const std::optional<time>& began() const noexcept { return began_; }

 private:
  void add_span(const script::action& current, std::chrono::nanoseconds callback, time now);

  summary& to_;
  bool keeps_timeline_;
  std::optional<time> began_;
  time started_at_{};
  time sent_at_{};
};

}  // namespace kclxx::replay
