// SPDX-License-Identifier: Apache-2.0
#include "processing/failure_handling.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <kclxx/error.hpp>
#include <kclxx/observer.hpp>

#include "base/environment.hpp"
#include "base/fnv.hpp"
#include "processing/patience.hpp"

namespace kclxx::processing {

namespace {

using std::chrono::milliseconds;

void require(bool is_valid, const char* what) {
  if (!is_valid) throw std::invalid_argument(std::string("failure_policy: ") + what);
}

void validate(const failure_policy& policy) {
  require(policy.attempts >= 0, "attempts is negative; 0 means without end");
  require(policy.initial_backoff.count() >= 0 && policy.max_backoff.count() >= 0,
          "a backoff is negative");
  require(!policy.max_age || policy.max_age->count() >= 0, "max_age is negative");
  require(policy.flood.window >= 0, "flood.window is negative; 0 turns the breaker off");
  require(policy.flood.ratio >= 0 && policy.flood.ratio <= 1, "flood.ratio is not within 0 and 1");
}

std::shared_ptr<parking_lot> default_lot() {
  return std::make_shared<parking_file>(detail::own_environment("KCLXX_PARKING_DIR").value_or("."));
}

/// The same in every run, so that a test's time does not vary.
std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  detail::fnv_hash sum(seed);
  sum.add(text);
  return sum.value() ^ (sum.value() >> 32U);
}

std::string count_of(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

bool is_lease_gone(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const process_ended&) {  // in a test; the record has not failed
    return true;
  } catch (...) {
    return detail::is_lease_gone(thrown);
  }
}

record_attempted attempt_event(const record& what, int attempt, std::chrono::nanoseconds duration,
                               const std::exception_ptr& thrown) {
  using outcome = record_attempted::outcome;
  return {what.position(), attempt, duration, thrown ? outcome::failed : outcome::succeeded,
          thrown ? message_of(thrown) : std::string()};
}

milliseconds longest_backoff(const failure_policy& policy, int failures) {
  constexpr milliseconds day = std::chrono::hours(24);
  const milliseconds initial = std::min(policy.initial_backoff, day);
  const milliseconds most = std::max(initial, std::min(policy.max_backoff, day));
  milliseconds wait = initial;
  for (int i = 1; i < failures && wait < most && wait.count() > 0; ++i) wait *= 2;
  return std::min(wait, most);
}

failure_handling::failure_handling(failure_policy policy, const shard_context& shard)
    : policy_(std::move(policy)), shard_(shard), is_observed_(shard.service()->is_observed()) {
  validate(policy_);
  warn_of_patience(policy_, shard_);
  if (policy_.exhausted != exhausted::park) return;
  if (!policy_.lot) policy_.lot = default_lot();
  policy_.lot->prepare(shard_);
}

failure_decision failure_handling::on_failure(const record& failed, failed_attempts& attempts,
                                              const std::exception_ptr& thrown) {
  if (is_lease_gone(thrown)) return {failure_decision::kind::lease_gone};
  ++attempts.count;
  ++attempts.round;
  const std::string error = message_of(thrown);
  if (attempts.count == 1) attempts.first_error = error;
  const std::string why = why_exhausted(failed, attempts, thrown);
  if (!why.empty()) return on_exhausted(failed, attempts, error, why);
  return retry(failed, attempts, error);
}

failure_decision failure_handling::retry(const record& failed, const failed_attempts& attempts,
                                         const std::string& error) {
  const milliseconds delay = backoff(failed, attempts.round + attempts.parking_failures);
  if (is_observed_) {
    shard_.service()->observe(record_retried{failed.position(), attempts.count + 1, delay, error});
  }
  if (is_logged(retries_logged_)) {
    log(log_level::warning, failed,
        "failed in attempt " + std::to_string(attempts.count) + ", the next one is in " +
            std::to_string(delay.count()) + " ms: " + error + " (logged once a minute at most)");
  }
  return {failure_decision::kind::retry, delay};
}

std::string failure_handling::why_exhausted(const record& failed, const failed_attempts& attempts,
                                            const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const permanent_error&) {
    return "a permanent error";
  } catch (const std::exception& error) {
    if (policy_.retryable && !policy_.retryable(error)) return "an error that is not retryable";
  } catch (...) {  // NOLINT(bugprone-empty-catch): retried
  }
  const auto arrival = failed.approximate_arrival_timestamp();
  if (policy_.max_age && arrival && shard_.date() - *arrival > *policy_.max_age) {
    return "older than " + std::to_string(policy_.max_age->count()) + " s";
  }
  if (policy_.attempts > 0 && attempts.round >= policy_.attempts) return "no attempt is left";
  return {};
}

failure_decision failure_handling::on_exhausted(const record& failed, failed_attempts& attempts,
                                                const std::string& error, const std::string& why) {
  const std::string reason = "after " + count_of(attempts.count, "attempt") + " (" + why + ")";
  if (policy_.exhausted == exhausted::stop) {
    log(log_level::error, failed, "failed " + reason + "; the session ends: " + error);
    return {failure_decision::kind::stop};
  }
  // A record that could not be parked was counted then.
  if (attempts.parking_failures == 0 && !allowed_by_breaker()) {
    log(log_level::error, failed,
        "failed " + reason + ", and so did too many of the last " +
            count_of(policy_.flood.window, "record") +
            " (failure_policy::flood); the session ends: " + error);
    return {failure_decision::kind::stop};
  }
  if (policy_.exhausted == exhausted::skip) {
    log(log_level::error, failed, "skipped " + reason + ": " + error);
    if (is_observed_) {
      shard_.service()->observe(record_skipped{failed.position(), attempts.count, error});
    }
    return {failure_decision::kind::complete};
  }
  try {
    policy_.lot->park(shard_, {failed, attempts.count, attempts.first_error, error});
  } catch (...) {
    return retry_parking(failed, attempts, message_of(std::current_exception()));
  }
  log(log_level::warning, failed, "parked " + reason + ": " + error);
  if (is_observed_) {
    shard_.service()->observe(record_parked{failed.position(), attempts.count, error});
  }
  return {failure_decision::kind::complete};
}

bool failure_handling::allowed_by_breaker() {
  const auto window = static_cast<std::uint64_t>(policy_.flood.window);
  if (window == 0) return true;
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ended_.fetch_add(1, std::memory_order_relaxed);
  failed_.push_back(number);
  while (failed_.front() + window <= number) failed_.pop_front();
  return static_cast<double>(failed_.size()) <= policy_.flood.ratio * static_cast<double>(window);
}

failure_decision failure_handling::retry_parking(const record& failed, failed_attempts& attempts,
                                                 const std::string& error) {
  ++attempts.parking_failures;
  attempts.round = 0;
  if (is_logged(parking_failures_logged_)) {
    log(log_level::error, failed,
        "cannot be parked: " + error +
            "; it is not complete, and its attempts start anew (logged once a minute at most)");
  }
  return retry(failed, attempts, error);
}

bool failure_handling::is_logged(std::optional<shard_context::clock::time_point>& last) {
  const auto now = shard_.now();
  const std::lock_guard lock(mutex_);
  if (last && now - *last < std::chrono::minutes(1)) return false;
  last = now;
  return true;
}

milliseconds failure_handling::backoff(const record& failed, int failures) const {
  const milliseconds longest = longest_backoff(policy_, failures);
  const std::uint64_t half = static_cast<std::uint64_t>(longest.count()) / 2;
  const std::uint64_t random = hash(
      failed.sequence_number(), hash(shard_.shard_id(), failed.sub_sequence_number() << 32U |
                                                            static_cast<std::uint64_t>(failures)));
  return longest - milliseconds(random % (half + 1));
}

void failure_handling::log(log_level level, const record& failed, const std::string& text) const {
  std::string line = "record " + to_string(failed.position());
  if (const auto key = failed.partition_key()) {
    line.append(" (partition key '").append(*key).append("')");
  }
  shard_.log(level, line + " " + text, failed.position());
}

}  // namespace kclxx::processing
