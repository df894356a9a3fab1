// SPDX-License-Identifier: Apache-2.0
#include "processing/circuit.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"

namespace kclxx::processing {

circuit::circuit(const failure_policy& policy)
    : most_(policy.breaker ? policy.breaker->failures : 0),
      is_limited_(policy.max_attempts || policy.max_age),
      max_wait_(policy.breaker ? policy.breaker->max_wait : policy.max_backoff),
      first_wait_(std::min(policy.max_backoff, max_wait_)) {}

std::optional<circuit::outage> circuit::on_success(time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<outage> ended;
  if (is_open_) ended = {failures_, now - first_failure_};
  is_quiet_ = true;
  is_open_ = has_given_up_ = false;
  ++successes_;
  probe_ = no_probe;
  failures_ = 0;
  return ended;
}

circuit::state circuit::on_failure(time_point now, record_state& failed, bool is_bad,
                                   std::uint64_t random) {
  const std::lock_guard lock(mutex_);
  if (most_ == 0) return state::closed;
  const probe_id probe = std::exchange(failed.probe, no_probe);
  const bool is_first = !failed.successes;
  if (is_first) failed.successes = successes_;
  if (failed.successes != successes_ && !is_open_) return state::closed;
  is_quiet_ = false;
  if (failures_++ == 0) {
    first_failure_ = now;
    is_alone_ = true;
  } else if (is_first) {
    is_alone_ = false;
  }
  if (is_open_) {
    // While a probe runs, another failure is of an attempt that began before it. Without a probe
    // it counts, too: each and batches have none, they try one record anyway.
    if (probe == probe_ && now >= next_probe_) wait(now, 2 * wait_, random);
    end_probe(probe);
    return state::open;
  }
  if (!has_given_up_ && (failures_ < most_ || (is_limited_ && is_alone_))) {
    has_given_up_ = failed.is_given_up = is_bad && successes_ == 0;
    return state::closed;
  }
  is_open_ = true;
  wait(now, first_wait_, random);
  return state::opens;
}

void circuit::on_permanent_error(record_state& failed) {
  if (failed.probe == no_probe) return;
  const std::lock_guard lock(mutex_);
  end_probe(std::exchange(failed.probe, no_probe));
}

void circuit::on_parking_failure(record_state& bad) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(bad.is_given_up, false)) has_given_up_ = false;
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

void circuit::end_probe(probe_id ended) {
  if (ended == probe_) probe_ = no_probe;
}

void circuit::wait(time_point now, std::chrono::milliseconds time, std::uint64_t random) {
  wait_ = std::min(time, max_wait_);
  next_probe_ = now + detail::jittered(wait_, random);
}

}  // namespace kclxx::processing
