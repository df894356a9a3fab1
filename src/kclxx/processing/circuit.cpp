// SPDX-License-Identifier: Apache-2.0
#include "processing/circuit.hpp"

#include <algorithm>

#include "processing/backoff.hpp"

namespace kclxx::processing {

circuit::circuit(const failure_policy& policy)
    : most_(policy.breaker ? policy.breaker->failures : 0),
      is_limited_(policy.max_attempts || policy.max_age),
      max_wait_(policy.breaker ? wait_of(policy.breaker->max_wait) : wait_of({})),
      first_wait_(std::min(wait_of(policy.max_backoff), max_wait_)),
      left_(most_) {}

std::optional<circuit::outage> circuit::on_success(time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<outage> ended;
  if (is_open_) ended = {failures_, now - first_failure_};
  is_quiet_ = has_succeeded_ = true;
  is_open_ = is_probing_ = false;
  failures_ = 0;
  left_ = most_;
  return ended;
}

circuit::state circuit::on_failure(time_point now, bool is_first, std::uint64_t random) {
  const std::lock_guard lock(mutex_);
  if (most_ == 0) return state::closed;
  is_quiet_ = false;
  if (failures_++ == 0) {
    first_failure_ = now;
    is_alone_ = true;
  } else if (is_first) {
    is_alone_ = false;
  }
  --left_;
  if (!is_open_) {
    if (left_ > 0 || (is_limited_ && is_alone_)) return state::closed;
    is_open_ = true;
    wait_ = first_wait_;
    wait(now, random);
    return state::opens;
  }
  // An earlier failure is of an attempt that began before the circuit opened.
  if (now >= next_probe_) {
    wait_ = std::min(2 * wait_, max_wait_);
    wait(now, random);
  }
  return state::open;
}

void circuit::on_bad_record() {
  const std::lock_guard lock(mutex_);
  is_alone_ = false;
  if (!has_succeeded_) left_ = 1;
}

void circuit::on_permanent_error() {
  const std::lock_guard lock(mutex_);
  is_probing_ = false;
}

std::optional<circuit::time_point> circuit::next_probe() const {
  if (!is_open_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return is_probing_ ? std::nullopt : std::optional(next_probe_);
}

std::int64_t circuit::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

bool circuit::admits_probe(time_point now) const {
  const std::lock_guard lock(mutex_);
  return !is_open_ || (!is_probing_ && now >= next_probe_);
}

void circuit::begin_probe() {
  const std::lock_guard lock(mutex_);
  is_probing_ = is_open_;
}

void circuit::wait(time_point now, std::uint64_t random) {
  is_probing_ = false;
  next_probe_ = now + jittered(wait_, random);
}

}  // namespace kclxx::processing
