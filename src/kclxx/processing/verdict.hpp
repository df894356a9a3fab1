// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <variant>

#include <kclxx/processing/failure_policy.hpp>

namespace kclxx::processing {

/// What an exception says of the record whose attempt threw it.
enum class error_kind {
  temporary,
  permanent,
  outage,      ///< no record's fault
  lease_gone,  ///< the record did not fail, and nothing can be persisted any more
};

/// Asks the exception's type, and then the policy's functions, which are user code: hold no lock.
error_kind kind_of(const std::exception_ptr& thrown, const failure_policy& policy);

// A verdict says what becomes of a record after an attempt has failed.
namespace verdicts {
struct retry {
  std::chrono::milliseconds delay{0};
};
/// The record is not tried again: it is skipped, or was parked.
struct complete {
  std::string reason{};  ///< as it follows "skipped": "after 5 attempts (no attempt is left)"
};
/// The record is complete once the parking lot has it.
struct park {
  std::string reason{};
};
/// The exception leaves the callback, once what is complete is checkpointed.
struct stop {
  std::string reason{};
  std::exception_ptr exception{};
};
/// The exception leaves the callback at once.
struct lease_gone {
  std::exception_ptr exception{};
};
}  // namespace verdicts
using verdict = std::variant<verdicts::retry, verdicts::complete, verdicts::park, verdicts::stop,
                             verdicts::lease_gone>;

/// What is known when an attempt has failed.
struct failure_facts {
  error_kind kind = error_kind::temporary;
  std::exception_ptr thrown{};
  int attempts = 1;          ///< of the record that failed, with this one
  int counted_attempts = 1;  ///< those of them that failure_policy::max_attempts counts
  std::optional<std::chrono::system_clock::time_point> arrival{};
  std::chrono::system_clock::time_point date{};  ///< now, to be compared with `arrival`
  std::chrono::steady_clock::time_point now{};
  /// When an open circuit admits the next attempt.
  std::optional<std::chrono::steady_clock::time_point> next_probe{};
  std::uint64_t random = 0;  ///< for the jitter
};

/// Pure.
[[nodiscard]] verdict decide(const failure_policy& policy, const failure_facts& facts);
/// The wait until the next attempt: at the circuit's next probe, or after the policy's backoff.
/// Pure.
[[nodiscard]] verdicts::retry retry_after(const failure_policy& policy, const failure_facts& facts);

/// "1 attempt", "2 attempts".
[[nodiscard]] std::string count_of(std::int64_t count, const char* noun);

}  // namespace kclxx::processing
