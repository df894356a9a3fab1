// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

namespace kclxx::testing {

/// Notices a wait that never ends, as when a record is retried without end: time passes by itself,
/// and nothing comes of it. One wait may take as long as it likes; it is the next that is too much.
/// What never ends can also take no time, as tasks that start each other.
class idle_time {
 public:
  using duration = std::chrono::steady_clock::duration;

  explicit idle_time(duration limit) : limit_(limit) {}

  /// A batch is delivered, a further position is requested or persisted, or the test continues.
  void end() noexcept {
    passed_ = {};
    steps_ = all_steps_ = tasks_ = 0;
  }
  void pass(duration time) noexcept {
    passed_ += time;
    if (time > duration(0)) steps_ = tasks_ = 0;
  }
  /// User code runs or waits, which may take no time at all.
  void step() noexcept {
    ++steps_;
    ++all_steps_;
  }
  /// What has a thread of its own in production runs.
  void run_task() noexcept { ++tasks_; }

  [[nodiscard]] bool is_over() const noexcept {
    return passed_ > limit_ || steps_ > most_steps || all_steps_ > most_in_all || is_spinning();
  }
  /// Tasks alone have gone too far.
  [[nodiscard]] bool is_spinning() const noexcept { return tasks_ > most_in_all; }
  /// Of what is over: what has happened without progress.
  [[nodiscard]] std::string text() const {
    using std::chrono::duration_cast, std::chrono::hours;
    if (passed_ > limit_) {
      return std::to_string(duration_cast<hours>(passed_).count()) +
             " hours of virtual time have passed without progress (see "
             "daemon_options::idle_limit)";
    }
    return "user code has run " + std::to_string(std::max(all_steps_, tasks_)) +
           " times without progress" +
           (all_steps_ > most_in_all ? "" : " and without virtual time passing");
  }

 private:
  static constexpr int most_steps = 25'000;      // without time
  static constexpr int most_in_all = 1'000'000;  // many for each record of the largest batch

  duration limit_;
  duration passed_{};
  int steps_ = 0;  // since time has passed
  int all_steps_ = 0;
  int tasks_ = 0;
};

}  // namespace kclxx::testing
