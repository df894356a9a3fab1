// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace kclxx::processing {

/// What the callbacks' thread of `parallel` has to look after. It makes retries ready, posts
/// runners, reports what is stuck, requests checkpoints, and throws what ends the session.
struct look_situation {
  using time_point = std::chrono::steady_clock::time_point;
  using optional_time = std::optional<time_point>;

  time_point now{};
  /// An exception that ends the session waits to be thrown.
  bool has_failure = false;
  /// Attempts may begin: no stop, no failure, and no drain that has taken its time.
  bool takes_records = true;
  /// No runner is there that would begin the probe.
  bool needs_runner = false;
  optional_time next_stuck{};
  optional_time next_retry{};
  /// When the open circuit admits an attempt. Unset when it is closed, or nothing is ready.
  optional_time next_probe{};

  /// A callback that waits. Unset between two callbacks, when a timer does the work.
  struct wait {
    bool has_reached_goal = false;
    time_point deadline = time_point::max();
    optional_time next_checkpoint{};
  };
  std::optional<wait> waits{};
};

/// When it has to look again. Unset: only a further event makes that necessary.
/// Pure.
[[nodiscard]] inline look_situation::optional_time next_look(const look_situation& situation) {
  const auto& waits = situation.waits;
  if (situation.has_failure || (waits && waits->has_reached_goal)) return situation.now;
  auto earliest = situation.next_stuck;
  const auto consider = [&](const look_situation::optional_time& time) {
    if (time) earliest = std::min(earliest.value_or(*time), *time);
  };
  if (waits) {
    consider(waits->deadline);
    // Between two callbacks the daemon reads nothing.
    consider(waits->next_checkpoint);
  }
  if (!situation.takes_records) return earliest;
  consider(situation.next_retry);
  // A runner that is there takes a probe that is due.
  const bool is_probe_due = situation.next_probe && *situation.next_probe <= situation.now;
  if (!is_probe_due || situation.needs_runner) consider(situation.next_probe);
  return earliest;
}

}  // namespace kclxx::processing
