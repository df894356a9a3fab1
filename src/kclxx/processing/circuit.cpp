// SPDX-License-Identifier: Apache-2.0
#include "processing/circuit.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"

namespace kclxx::processing {

circuit::circuit(const failure_policy& policy)
    : most_(policy.breaker ? std::optional(policy.breaker->failures) : std::nullopt),
      max_wait_(policy.breaker.value_or(circuit_breaker()).max_wait),
      first_wait_(std::min(policy.max_backoff, max_wait_)) {}

std::optional<circuit::outage> circuit::on_success(time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<outage> ended;
  if (is_open_) ended = {failures_, now - first_failure_};
  is_quiet_ = true;
  is_open_ = false;
  ++successes_;
  probe_ = no_probe;
  failures_ = 0;
  return ended;
}

circuit::state circuit::on_failure(time_point now, record_state& failed, bool is_outage,
                                   std::uint64_t random) {
  const std::lock_guard lock(mutex_);
  const probe_id running = probe_;
  const probe_id probe = end_attempt(failed);
  // Since it first failed others have succeeded: that is no outage.
  const bool is_known = failed.successes != successes_;
  if (is_known && !is_open_ && !is_outage) return state::closed;
  is_quiet_ = false;
  if (failures_++ == 0) first_failure_ = now;
  if (is_open_) {
    // While a probe runs, another failure is of an attempt that began before it. Without a probe
    // it counts, too: each and batches have none, they try one record anyway.
    if (probe == running && now >= next_probe_) wait(now, 2 * wait_, random);
    return state::open;
  }
  if (!is_outage && (!most_ || failures_ < *most_)) return state::closed;
  is_open_ = true;
  wait(now, first_wait_, random);
  return state::opens;
}

void circuit::on_own_failure(record_state& failed) {
  const std::lock_guard lock(mutex_);
  end_attempt(failed);
}

circuit::probe_id circuit::end_attempt(record_state& failed) {
  if (!failed.successes) failed.successes = successes_;
  const probe_id ended = std::exchange(failed.probe, no_probe);
  if (ended == probe_) probe_ = no_probe;
  return ended;
}

std::optional<circuit::time_point> circuit::next_probe() const {
  if (!is_open_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return probe_ == no_probe ? std::optional(next_probe_) : std::nullopt;
}

std::int64_t circuit::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

std::optional<circuit::probe_id> circuit::try_begin_probe(time_point now) {
  const std::lock_guard lock(mutex_);
  if (!is_open_) return no_probe;
  if (probe_ != no_probe || now < next_probe_) return std::nullopt;
  return probe_ = ++last_probe_;
}

void circuit::wait(time_point now, std::chrono::milliseconds time, std::uint64_t random) {
  wait_ = std::min(time, max_wait_);
  next_probe_ = now + detail::jittered(wait_, random);
}

}  // namespace kclxx::processing
