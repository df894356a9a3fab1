// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

namespace kclxx::testing {

/// A steady clock that moves only when it is set.
///
/// It begins some time after zero, as a machine's does, so that a processor can take zero for
/// "long ago". Thread safety: now() from any thread.
class virtual_clock {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::hours start{24};
  static constexpr std::chrono::milliseconds first_date{1'600'000'000'000};

  [[nodiscard]] clock::time_point now() const noexcept {
    return clock::time_point(clock::duration(ticks_.load()));
  }
  [[nodiscard]] std::chrono::milliseconds elapsed() const noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now().time_since_epoch() - start);
  }
  /// The date, which moves with it.
  [[nodiscard]] std::chrono::system_clock::time_point date() const noexcept {
    return std::chrono::system_clock::time_point(first_date + elapsed());
  }
  /// Never backwards.
  void move_to(clock::time_point time) noexcept {
    if (time > now()) ticks_ = time.time_since_epoch().count();
  }

 private:
  std::atomic<clock::rep> ticks_{clock::duration(start).count()};
};

}  // namespace kclxx::testing
