// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "processing/completion_window.hpp"

namespace kclxx::processing {

/// Names one attempt of one record; never used again.
struct attempt_ticket {
  std::size_t place = 0;
  std::uint64_t serial = 0;
};

/// The records that handlers have, and for how long: which of them are stuck.
///
/// Pure. Thread safety: none.
class handlers_in_progress {
 public:
  using time_point = completion_window::time_point;
  using duration = time_point::duration;
  struct attempt {
    ordinal record_number = 0;
    int number = 1;
    time_point began{};
    time_point touched{};  // the stuck clock began
    // Once it has failed, only the decision is to come, or the record is being parked.
    enum class step { runs, failed, parking } at = step::runs;
    // Reports so far; the next one is due after twice the time of the last.
    int reports = 0;
    std::uint64_t serial = 0;
  };

  /// `stuck_after` of 0: no handler is ever stuck.
  explicit handlers_in_progress(std::chrono::milliseconds stuck_after)
      : stuck_after_(stuck_after) {}

  attempt_ticket add(ordinal record_number, int attempt_number, time_point now);
  /// Null when it was removed.
  [[nodiscard]] attempt* find(const attempt_ticket& ticket) noexcept;
  void touch(const attempt_ticket& ticket, time_point now) noexcept;
  /// Precondition: it is there. Returns what it was.
  attempt remove(const attempt_ticket& ticket) noexcept;
  void clear();

  [[nodiscard]] std::size_t size() const noexcept { return all_.size() - free_.size(); }
  /// Of these, the ones of records that have failed before.
  [[nodiscard]] std::size_t retrying() const noexcept { return retrying_; }
  /// Of these, the ones that have not ended.
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// Precondition of these two: it is there. The attempt has failed; its record is being parked.
  void fail(attempt& ended) noexcept;
  void begin_parking(const attempt_ticket& ticket, time_point now) noexcept;
  /// How many were reported as stuck.
  [[nodiscard]] std::size_t stuck() const noexcept { return stuck_; }
  /// When the oldest of these began.
  [[nodiscard]] std::optional<time_point> oldest_stuck() const noexcept;
  /// When an attempt that begins now would be stuck.
  [[nodiscard]] std::optional<time_point> stuck_at(time_point now) const noexcept;

  /// Those of which a report is due; it then counts as made.
  [[nodiscard]] std::vector<attempt_ticket> take_due(time_point now);
  [[nodiscard]] std::optional<time_point> next_due() const noexcept;

 private:
  [[nodiscard]] std::optional<time_point> due(const attempt& begun) const noexcept;
  void forget_reports(attempt& reported) noexcept;

  std::chrono::milliseconds stuck_after_;
  std::vector<attempt> all_;  // a serial of 0: free
  std::vector<std::size_t> free_;
  std::uint64_t next_serial_ = 1;
  std::size_t stuck_ = 0;
  std::size_t retrying_ = 0;
  std::size_t running_ = 0;
};

}  // namespace kclxx::processing
