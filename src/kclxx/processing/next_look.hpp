// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace kclxx::processing {

inline constexpr auto never = std::chrono::steady_clock::time_point::max();

/// What the callbacks' thread of `parallel` has to look after. It makes retries ready, posts
/// runners, reports what is stuck, requests checkpoints, and throws what ends the session.
struct look_situation {
  using time_point = std::chrono::steady_clock::time_point;

  time_point now{};
  /// An exception that ends the session waits to be thrown.
  bool has_failure = false;
  /// Attempts may begin: no stop, no failure, and no drain that has taken its time.
  bool takes_records = true;
  /// No runner is there that would begin the probe.
  bool needs_runner = false;
  time_point next_stuck = never;
  time_point next_retry = never;
  /// When the open circuit admits an attempt. Never when it is closed, or nothing is ready.
  time_point next_probe = never;

  /// A callback that waits.
  struct wait {
    bool has_reached_goal = false;
    time_point deadline = never;
    time_point next_checkpoint = never;
  };
  std::optional<wait> waits{};  ///< unset between two callbacks, when a timer does the work
};

/// When it has to look again. Never when only a further event makes that necessary.
/// Pure.
[[nodiscard]] inline look_situation::time_point next_look(const look_situation& situation) {
  const auto& waits = situation.waits;
  if (situation.has_failure || (waits && waits->has_reached_goal)) return situation.now;
  auto earliest = situation.next_stuck;
  // Between two callbacks the daemon reads no checkpoint.
  if (waits) earliest = std::min({earliest, waits->deadline, waits->next_checkpoint});
  if (!situation.takes_records) return earliest;
  // A runner that is there takes a probe that is due.
  const bool is_taken = situation.next_probe <= situation.now && !situation.needs_runner;
  return std::min({earliest, situation.next_retry, is_taken ? never : situation.next_probe});
}

}  // namespace kclxx::processing
