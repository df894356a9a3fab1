// SPDX-License-Identifier: Apache-2.0
#include "driver/shard_timers.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::driver {

shard_timers::timer_id shard_timers::start(time_point due, std::chrono::milliseconds period,
                                           std::function<void()> call) {
  const timer_id id = next_id_++;
  if (has_ended_) return id;
  timers_.emplace(id, timer{due, period, std::make_shared<std::function<void()>>(std::move(call))});
  return id;
}

void shard_timers::cancel(timer_id id) { timers_.erase(id); }

std::map<shard_timers::timer_id, shard_timers::timer>::const_iterator shard_timers::first() const {
  return std::min_element(timers_.begin(), timers_.end(),
                          [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
}

std::optional<shard_timers::time_point> shard_timers::next_due() const {
  const auto found = first();
  if (found == timers_.end()) return std::nullopt;
  return found->second.due;
}

shard_timers::function shard_timers::take_due(time_point now) {
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

}  // namespace kclxx::driver
