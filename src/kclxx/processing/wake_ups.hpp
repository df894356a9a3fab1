// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <kclxx/detail/shard_service.hpp>

namespace kclxx::processing {

/// When the callbacks' thread looks at the records again: it is notified while a callback waits,
/// and woken by a timer of the shard between callbacks.
///
/// Pure: it tells what to do. Thread safety: none.
class wake_ups {
 public:
  using time_point = detail::shard_service::clock::time_point;
  using timer_id = detail::shard_service::timer_id;
  /// What is to be done once the mutex is released.
  struct to_do {
    bool notify = false;
    std::optional<time_point> timer{};  ///< to be started
  };

  /// A callback has begun or ended. It does not wait.
  void set_open(bool is_open) noexcept {
    is_open_ = is_open;
    waits_until_.reset();
  }
  void begin_wait(time_point deadline) noexcept { waits_until_ = deadline; }
  [[nodiscard]] bool is_waiting() const noexcept { return waits_until_.has_value(); }
  /// Precondition: a callback waits.
  void notify(to_do& wake_up) noexcept {
    waits_until_.reset();
    wake_up.notify = true;
  }

  /// The thread has to look then, at the latest. An open callback that does not wait looks before
  /// it waits or ends.
  void by(time_point time, to_do& wake_up) noexcept {
    if (is_open_) {
      if (waits_until_ && time < *waits_until_) notify(wake_up);
    } else if (!timer_ || time < *timer_) {
      timer_ = wake_up.timer = time;
    }
  }

  /// The timer for `time` was started. Returns the one that is of no use: the one before, or this
  /// one, when an earlier time was asked for meanwhile.
  [[nodiscard]] std::optional<timer_id> timer_started(time_point time, timer_id id) noexcept {
    std::optional<timer_id> superseded(id);
    if (timer_ == time) std::swap(superseded, timer_id_);
    return superseded;
  }
  /// The timer for `time` is over. False when an earlier one has taken its place.
  [[nodiscard]] bool timer_fired(time_point time) noexcept {
    if (timer_ != time) return false;
    timer_.reset();
    timer_id_.reset();
    return true;
  }

 private:
  bool is_open_ = false;
  std::optional<time_point> waits_until_;
  std::optional<time_point> timer_;  // the next one
  std::optional<timer_id> timer_id_;
};

}  // namespace kclxx::processing
