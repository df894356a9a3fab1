// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service.hpp>

namespace kclxx::driver {

/// The timers of shard_context::after and every. It knows which is due, and calls nothing.
///
/// Thread safety: none; the host guards it.
class shard_timers {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using timer_id = detail::shard_service::timer_id;
  /// Shared, so that a timer that is cancelled while it runs stays alive until it returns.
  using function = std::shared_ptr<std::function<void()>>;

  timer_id start(time_point due, std::chrono::milliseconds period, std::function<void()> call) {
    auto shared = std::make_shared<std::function<void()>>(std::move(call));
    if (has_ended_) {
      dropped_.push_back(std::move(shared));
    } else {
      timers_.emplace(next_id_, timer{due, period, std::move(shared)});
    }
    return next_id_++;
  }

  void cancel(timer_id id) {
    const auto found = timers_.find(id);
    if (found == timers_.end()) return;
    dropped_.push_back(std::move(found->second.call));
    timers_.erase(found);
  }

  /// Ends all timers. A timer that is started later is never due.
  void end() {
    for (auto& [id, ended] : timers_) dropped_.push_back(std::move(ended.call));
    timers_.clear();
    has_ended_ = true;
  }

  /// The functions of timers that have ended otherwise than by take_due. Destroying one is user
  /// code, so the host does that without its lock.
  [[nodiscard]] std::vector<function> take_dropped() { return std::exchange(dropped_, {}); }
  [[nodiscard]] bool has_dropped() const noexcept { return !dropped_.empty(); }

  [[nodiscard]] std::optional<time_point> next_due() const {
    const auto found = first();
    if (found == timers_.end()) return std::nullopt;
    return found->second.due;
  }

  /// The function of a timer that is due, or null. A periodic timer is due again a period after it
  /// was due, or a period from now when it is late by more than a period.
  [[nodiscard]] function take_due(time_point now) {
    const auto found = first();
    if (found == timers_.end() || found->second.due > now) return nullptr;
    function call = found->second.call;
    if (found->second.period == std::chrono::milliseconds(0)) {
      timers_.erase(found);
      return call;
    }
    timer& periodic = timers_.at(found->first);
    periodic.due = std::max(periodic.due + periodic.period, now);
    if (periodic.due == now) periodic.due = now + periodic.period;
    return call;
  }

 private:
  struct timer {
    time_point due;
    std::chrono::milliseconds period;
    function call;
  };
  [[nodiscard]] std::map<timer_id, timer>::const_iterator first() const {
    return std::min_element(timers_.begin(), timers_.end(), [](const auto& a, const auto& b) {
      return a.second.due < b.second.due;
    });
  }

  std::map<timer_id, timer> timers_;  // few: a search for the first is cheap
  std::vector<function> dropped_;
  timer_id next_id_ = 1;
  bool has_ended_ = false;
};

}  // namespace kclxx::driver
