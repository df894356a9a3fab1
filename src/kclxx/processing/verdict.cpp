// SPDX-License-Identifier: Apache-2.0
#include "processing/verdict.hpp"

#include <utility>

#include "base/duration.hpp"
#include "base/printable.hpp"

namespace kclxx::processing {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Both times are rounded, since arrival times reach further than a difference of two of them does.
bool is_older(std::chrono::system_clock::time_point arrival,
              std::chrono::system_clock::time_point date, seconds max_age) {
  const milliseconds age = std::chrono::ceil<milliseconds>(date.time_since_epoch()) -
                           std::chrono::floor<milliseconds>(arrival.time_since_epoch());
  return std::chrono::ceil<seconds>(age) > max_age;
}

/// Why the record is bad. Empty when it is not.
std::string defect(const failure_policy& policy, const failure_facts& facts) {
  if (facts.kind == error_kind::permanent) return "a permanent error";
  if (facts.kind == error_kind::outage) return {};
  if (policy.max_age && facts.arrival && is_older(*facts.arrival, facts.date, *policy.max_age)) {
    return "older than " + std::to_string(policy.max_age->count()) + " s";
  }
  if (policy.max_attempts && facts.counted_attempts >= *policy.max_attempts) {
    return "no attempt is left";
  }
  return {};
}

}  // namespace

error_kind kind_of(const std::exception_ptr& thrown, const failure_policy& policy) {
  if (detail::is_lease_gone(thrown)) return error_kind::lease_gone;
  try {
    std::rethrow_exception(thrown);
  } catch (const outage_error&) {
    return error_kind::outage;
  } catch (const permanent_error&) {
    return error_kind::permanent;
  } catch (const std::exception& error) {
    if (policy.is_outage && policy.is_outage(error)) return error_kind::outage;
    if (policy.is_permanent && policy.is_permanent(error)) return error_kind::permanent;
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody can tell
  }
  return error_kind::temporary;
}

verdict decide(const failure_policy& policy, const failure_facts& facts) {
  if (facts.kind == error_kind::lease_gone) return verdicts::lease_gone{facts.thrown};
  const std::string why = defect(policy, facts);
  if (why.empty()) return retry_after(policy, facts);
  std::string reason = "after " + count_of(facts.attempts, "attempt") + " (" + why + ")";
  switch (policy.bad_record) {
    case bad_record::skip:
      return verdicts::complete{std::move(reason)};
    case bad_record::park:
      return verdicts::park{std::move(reason)};
    case bad_record::stop:
      break;
  }
  return verdicts::stop{std::move(reason), facts.thrown};
}

verdicts::retry retry_after(const failure_policy& policy, const failure_facts& facts) {
  // A permanent error sets no next probe, so the one that is known may be over.
  if (facts.next_probe && *facts.next_probe > facts.now) {
    return {std::chrono::ceil<milliseconds>(*facts.next_probe - facts.now)};
  }
  return {detail::jittered(
      detail::longest_backoff(policy.initial_backoff, policy.max_backoff, facts.attempts),
      facts.random)};
}

std::string count_of(std::int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace kclxx::processing
