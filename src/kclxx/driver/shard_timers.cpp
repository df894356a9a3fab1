// SPDX-License-Identifier: Apache-2.0
#include "driver/shard_timers.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::driver {

shard_timers::timer_id shard_timers::start(time_point due, std::chrono::milliseconds period,
                                           std::function<void()> call) {
  auto shared = std::make_shared<std::function<void()>>(std::move(call));
  if (has_ended_) {
    dropped_.push_back(std::move(shared));
  } else {
    timers_.emplace(next_id_, timer{due, period, std::move(shared)});
  }
  return next_id_++;
}

void shard_timers::cancel(timer_id id) {
  const auto found = timers_.find(id);
  if (found == timers_.end()) return;
  dropped_.push_back(std::move(found->second.call));
  timers_.erase(found);
}

void shard_timers::end() {
  for (auto& [id, ended] : timers_) dropped_.push_back(std::move(ended.call));
  timers_.clear();
  has_ended_ = true;
}

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
