// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_result.hpp"

#include <algorithm>

namespace kclxx::tool {

replay::totals replay_result::total() const {
  replay::totals all;
  for (const replayed_shard& shard : shards) all.add(shard.summary.counts);
  return all;
}

std::chrono::nanoseconds replay_result::took() const noexcept {
  replay::summary all;
  for (const replayed_shard& shard : shards) {
    const replay::summary& summary = shard.summary;
    if (!summary.first_status) continue;
    all.first_status =
        std::min(all.first_status.value_or(*summary.first_status), *summary.first_status);
    all.last_status = std::max(all.last_status, summary.last_status);
  }
  return all.took();
}

exit_status status_of(const replayed_shard& shard) noexcept {
  if (!shard.setup_error.empty()) return exit_status::setup_failed;
  if (shard.summary.damage) return exit_status::bad_transcript;
  if (shard.summary.failure) return exit_status::child_failed;
  const bool is_fine = shard.summary.breaches.count() == 0 &&
                       shard.summary.differences.count() == 0 &&
                       (!shard.parked || shard.parked->complete == shard.parked->records);
  return is_fine ? exit_status::ok : exit_status::finding;
}

bool replay_result::had_fault() const noexcept {
  return std::any_of(shards.begin(), shards.end(),
                     [](const replayed_shard& shard) { return shard.summary.had_fault; });
}

exit_status replay_result::status() const noexcept {
  const bool is_fine = !effects || (effects->is_same() && effects->same > 0 && had_fault());
  exit_status worst = is_fine ? exit_status::ok : exit_status::finding;
  for (const replayed_shard& shard : shards) worst = std::max(worst, status_of(shard));
  return worst;
}

}  // namespace kclxx::tool
