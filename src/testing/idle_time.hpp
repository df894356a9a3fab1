// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace kclxx::testing {

/// Notices a wait that never ends, as when a record is retried without end: time passes by itself,
/// and nothing comes of it. One wait may take as long as it likes; it is the next that is too much.
class idle_time {
 public:
  using duration = std::chrono::steady_clock::duration;

  explicit idle_time(duration limit) : limit_(limit) {}

  /// A batch is delivered, a further position is requested or persisted, or the test continues.
  void end() noexcept {
    passed_ = {};
    steps_ = 0;
  }
  void pass(duration time) noexcept {
    passed_ += time;
    if (time > duration(0)) steps_ = 0;
  }
  /// User code runs or waits, which may take no time at all.
  void step() noexcept { ++steps_; }

  [[nodiscard]] bool is_over() const noexcept { return passed_ > limit_ || steps_ > most_steps; }
  [[nodiscard]] duration passed() const noexcept { return passed_; }

 private:
  static constexpr int most_steps = 25'000;

  duration limit_;
  duration passed_{};
  int steps_ = 0;
};

}  // namespace kclxx::testing
