// SPDX-License-Identifier: Apache-2.0
#include "processing/failure_handling.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <kclxx/error.hpp>
#include <kclxx/observer.hpp>

#include "base/backoff.hpp"
#include "base/environment.hpp"
#include "base/fnv.hpp"
#include "base/printable.hpp"
#include "processing/patience.hpp"

namespace kclxx::processing {

namespace {

using std::chrono::milliseconds;

void require(bool is_valid, const char* problem) {
  if (!is_valid) throw std::invalid_argument(std::string("failure_policy: ") + problem);
}

std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  detail::fnv_hash sum(seed);
  sum.add(text);
  return sum.value() ^ (sum.value() >> 32U);
}

std::string count_of(std::int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

bool is_lease_gone(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const detail::process_ended&) {  // in a test; the record has not failed
    return true;
  } catch (...) {
    return detail::is_lease_gone(thrown);
  }
}

observer::record_attempted attempt_event(const record& attempted, int attempt,
                                         std::chrono::nanoseconds duration,
                                         const std::exception_ptr& thrown) {
  using outcome = observer::record_attempted::outcome;
  return {attempted.position(), attempt, duration, thrown ? outcome::failed : outcome::succeeded,
          thrown ? message_of(thrown) : std::string()};
}

failure_policy with_limited_waits(failure_policy policy) {
  const auto limit = [](milliseconds& wait) {
    wait = std::clamp<milliseconds>(wait, milliseconds(1), std::chrono::hours(24));
  };
  limit(policy.initial_backoff);
  limit(policy.max_backoff);
  if (policy.breaker) limit(policy.breaker->max_wait);
  return policy;
}

failure_policy checked(failure_policy policy) {
  constexpr milliseconds none{0};
  require(policy.max_attempts.value_or(1) > 0, "max_attempts is below 1; unset is without end");
  require(policy.initial_backoff >= none && policy.max_backoff >= none, "a backoff is negative");
  require(!policy.max_age || policy.max_age->count() >= 0, "max_age is negative");
  if (policy.breaker) {
    require(policy.breaker->failures > 0, "breaker->failures is below 1; unset is no breaker");
    require(policy.breaker->max_wait >= none, "breaker->max_wait is negative");
  }
  if (policy.bad_record == bad_record::park && !policy.lot) {
    const auto directory = detail::own_environment("KCLXX_PARKING_DIR");
    require(directory.has_value(),
            "bad_record::park needs a place: set KCLXX_PARKING_DIR to a directory, or "
            "failure_policy::lot");
    policy.lot = std::make_shared<parking_file>(*directory);
  }
  return with_limited_waits(std::move(policy));
}

failure_handling::failure_handling(failure_policy policy, const shard_context& shard)
    : policy_(std::move(policy)),
      shard_(shard),
      service_(detail::service_access::of(shard)),
      is_observed_(service_->is_observed()),
      circuit_(policy_) {
  warn_of_patience(policy_, shard_);
  if (policy_.bad_record == bad_record::park) policy_.lot->prepare(shard_);
}

failure_decision failure_handling::on_failure(const record& failed, failed_attempts& attempts,
                                              std::exception_ptr& thrown) {
  if (is_lease_gone(thrown)) return {failure_decision::kind::lease_gone};
  ++attempts.count;
  const std::string error = message_of(thrown);
  if (attempts.count == 1) attempts.first_error = error;
  if (is_permanent(thrown)) {
    circuit_.on_permanent_error(attempts.at_circuit);
    return on_bad_record(failed, attempts, thrown, error, "a permanent error");
  }
  const std::string why = why_bad(failed, attempts.counted + 1);
  const auto state = circuit_.on_failure(shard_.now(), attempts.at_circuit, !why.empty(),
                                         random(failed, attempts.count));
  if (state == circuit::state::opens) report_open(failed, error);
  if (state == circuit::state::closed) {
    ++attempts.counted;
    if (!why.empty()) return on_bad_record(failed, attempts, thrown, error, why);
  }
  return retry(failed, attempts, error);
}

void failure_handling::on_retry_success(const sequence_position& position, int attempt) {
  if (!is_failure_logged_.exchange(false)) return;
  shard_.log(log_level::info,
             "record " + to_string(position) + " succeeded in attempt " + std::to_string(attempt),
             position);
}

failure_decision failure_handling::retry(const record& failed, const failed_attempts& attempts,
                                         const std::string& error) {
  const milliseconds delay = backoff(failed, attempts);
  if (is_observed_) {
    service_->observe(
        observer::record_retried{failed.position(), attempts.count + 1, delay, error});
  }
  if (acquire_log_turn(retries_logged_)) {
    is_failure_logged_ = true;
    log(log_level::warning, "attempt " + std::to_string(attempts.count) + " at ", failed,
        " failed: " + error + "; the next one is in " + std::to_string(delay.count()) +
            " ms (logged once a minute at most)");
  }
  return {failure_decision::kind::retry, delay};
}

bool failure_handling::is_complete_after(const record& failed, failed_attempts& attempts,
                                         std::exception_ptr thrown) {
  const auto decision = on_failure(failed, attempts, thrown);
  switch (decision.outcome) {
    case failure_decision::kind::retry:
      shard_.sleep_for(decision.delay);
      return false;
    case failure_decision::kind::complete:
      return true;
    case failure_decision::kind::stop:
    case failure_decision::kind::lease_gone:
      break;
  }
  std::rethrow_exception(thrown);
}

bool failure_handling::is_permanent(const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const permanent_error&) {
    return true;
  } catch (const std::exception& error) {
    return policy_.is_permanent && policy_.is_permanent(error);
  } catch (...) {
    return false;
  }
}

std::string failure_handling::why_bad(const record& failed, int counted) const {
  const auto arrival = failed.approximate_arrival_timestamp();
  if (policy_.max_age && arrival &&
      std::chrono::ceil<std::chrono::seconds>(shard_.date() - *arrival) > *policy_.max_age) {
    return "older than " + std::to_string(policy_.max_age->count()) + " s";
  }
  if (policy_.max_attempts && counted >= *policy_.max_attempts) {
    return "no attempt is left";
  }
  return {};
}

failure_decision failure_handling::on_bad_record(const record& failed, failed_attempts& attempts,
                                                 std::exception_ptr& thrown,
                                                 const std::string& error,
                                                 const std::string& reason) {
  const std::string after = "after " + count_of(attempts.count, "attempt") + " (" + reason + ")";
  if (policy_.bad_record == bad_record::stop) {
    log(log_level::error, "", failed, " failed " + after + "; the session ends: " + error);
    return {failure_decision::kind::stop};
  }
  if (policy_.bad_record == bad_record::skip) {
    log(log_level::error, "", failed, " skipped " + after + ": " + error);
    if (is_observed_) {
      service_->observe(observer::record_skipped{failed.position(), attempts.count, error});
    }
    return {failure_decision::kind::complete};
  }
  try {
    policy_.lot->park(shard_, {failed, attempts.count, attempts.first_error, error});
  } catch (...) {
    const auto of_park = std::current_exception();
    if (!is_lease_gone(of_park)) return retry_parking(failed, attempts, message_of(of_park));
    thrown = of_park;
    return {failure_decision::kind::lease_gone};
  }
  log(log_level::warning, "", failed, " parked " + after + ": " + error);
  if (is_observed_) {
    service_->observe(observer::record_parked{failed.position(), attempts.count, error});
  }
  return {failure_decision::kind::complete};
}

failure_decision failure_handling::retry_parking(const record& failed, failed_attempts& attempts,
                                                 const std::string& error) {
  circuit_.on_parking_failure(attempts.at_circuit);
  attempts.counted = 0;
  if (acquire_log_turn(parking_failures_logged_)) {
    log(log_level::error, "", failed,
        " cannot be parked: " + error +
            "; it is not complete, and its attempts start anew (logged once a minute at most)");
  }
  return retry(failed, attempts, error);
}

bool failure_handling::close() {
  const auto ended = circuit_.on_success(shard_.now());
  if (!ended) return false;
  is_failure_logged_ = false;
  shard_.log(log_level::info,
             "the circuit is closed: an attempt succeeded, after " +
                 std::to_string(ended->failures) + " that failed within " +
                 std::to_string(std::chrono::duration_cast<milliseconds>(ended->time).count()) +
                 " ms");
  if (is_observed_) service_->observe(observer::circuit_changed{false, ended->failures, {}});
  return true;
}

void failure_handling::report_open(const record& failed, const std::string& error) {
  const auto failures = circuit_.failures();
  log(log_level::error,
      "the circuit is open: the last " + count_of(failures, "attempt") +
          " failed, so the fault is probably in no record. Until one succeeds, none is counted, "
          "and one at a time is made. The last one, at ",
      failed, ": " + error);
  if (is_observed_) service_->observe(observer::circuit_changed{true, failures, error});
}

bool failure_handling::acquire_log_turn(std::optional<shard_context::clock::time_point>& last) {
  const auto now = shard_.now();
  const std::lock_guard lock(mutex_);
  if (last && now - *last < std::chrono::minutes(1)) return false;
  last = now;
  return true;
}

milliseconds failure_handling::backoff(const record& failed,
                                       const failed_attempts& attempts) const {
  const auto probe = circuit_.next_probe();
  const auto now = shard_.now();
  // A permanent error sets no next probe.
  if (probe && *probe > now) return std::chrono::ceil<milliseconds>(*probe - now);
  return detail::jittered(
      detail::longest_backoff(policy_.initial_backoff, policy_.max_backoff, attempts.count),
      random(failed, attempts.count));
}

/// The same in every run with the same seed, so that a test's time does not vary.
std::uint64_t failure_handling::random(const record& failed, int failures) const {
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;
  return hash(failed.sequence_number(),
              hash(shard_.shard_id(),
                   (failed.sub_sequence_number() << 32U | static_cast<std::uint64_t>(failures)) +
                       service_->seed() * spread));
}

void failure_handling::log(log_level level, const std::string& beginning, const record& subject,
                           const std::string& ending) const {
  std::string line = beginning + "record " + to_string(subject.position());
  if (const auto key = subject.partition_key()) {
    line.append(" (partition key ").append(detail::quoted(*key)).append(")");
  }
  shard_.log(level, line + ending, subject.position());
}

}  // namespace kclxx::processing
