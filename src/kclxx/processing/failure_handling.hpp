// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <kclxx/observer.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/record.hpp>
#include <kclxx/shard_context.hpp>

#include "base/thrown.hpp"

namespace kclxx::processing {

using detail::message_of;

/// The same as detail::is_lease_gone; also true for the process_ended of the test kit.
bool is_lease_gone(const std::exception_ptr& thrown);

/// The wait after so many failures, without jitter. A backoff of more than a day counts as a day.
std::chrono::milliseconds longest_backoff(const failure_policy& policy, int failures);

/// The failed attempts of one record. Who runs the record keeps it until the record is complete.
struct failed_attempts {
  int count = 0;  ///< in all
  int round = 0;  ///< since the record was last to be parked, which failed
  int parking_failures = 0;
  std::string first_error{};
};

/// The event of an attempt, which threw or did not.
record_attempted attempt_event(const record& what, int attempt, std::chrono::nanoseconds duration,
                               const std::exception_ptr& thrown);

/// What becomes of a record that failed.
struct failure_decision {
  enum class kind {
    retry,       ///< after `delay`
    complete,    ///< it was skipped or parked
    stop,        ///< the exception leaves the callback, once what is complete is checkpointed
    lease_gone,  ///< the same, at once: the record did not fail, and nothing can be persisted
  };
  kind what;
  std::chrono::milliseconds delay{0};  ///< of retry
};

/// Decides for every form of processing what becomes of a record that failed: parks it, counts it,
/// and logs what it does.
///
/// 1. Call a handler through attempt().
/// 2. Call on_success for records that succeeded.
/// 3. Call on_failure when a handler threw, and do what it decides.
///
/// Thread safety: all functions may be called from any thread, for different records.
/// Lifetime: `shard` outlives it.
class failure_handling {
 public:
  /// Errors: std::invalid_argument when the policy is not valid; what the parking lot's prepare()
  /// throws.
  failure_handling(failure_policy policy, const shard_context& shard);

  /// Calls the handler, which is `call`, and reports the attempt to the observers, if there are
  /// any. `attempts` are those of `first`, the first or only record that the handler gets. Errors:
  /// what the handler throws.
  template <class Function>
  void attempt(const record& first, const failed_attempts& attempts, Function&& call) {
    if (!is_observed_) return std::forward<Function>(call)();
    const auto began = shard_.now();
    std::exception_ptr thrown;
    try {
      std::forward<Function>(call)();
    } catch (...) {
      thrown = std::current_exception();
    }
    shard_.service()->observe(
        attempt_event(first, attempts.count + 1, shard_.now() - began, thrown));
    if (thrown) std::rethrow_exception(thrown);
  }

  /// So many records succeeded; for the flood breaker. Costs one addition.
  void on_success(std::size_t records = 1) noexcept {
    ended_.fetch_add(records, std::memory_order_relaxed);
  }

  /// `attempts` is the record's; it counts this one. Errors: what policy.retryable throws.
  /// Blocking: while a record is parked.
  [[nodiscard]] failure_decision on_failure(const record& failed, failed_attempts& attempts,
                                            const std::exception_ptr& thrown);

 private:
  /// Why the record is not tried again; empty: it is.
  [[nodiscard]] std::string why_exhausted(const record& failed, const failed_attempts& attempts,
                                          const std::exception_ptr& thrown) const;
  failure_decision on_exhausted(const record& failed, failed_attempts& attempts,
                                const std::string& error, const std::string& why);
  /// Counts a record that failed for good. False when it is one too many.
  bool allowed_by_breaker();
  [[nodiscard]] failure_decision retry(const record& failed, const failed_attempts& attempts,
                                       const std::string& error);
  [[nodiscard]] failure_decision retry_parking(const record& failed, failed_attempts& attempts,
                                               const std::string& error);
  [[nodiscard]] std::chrono::milliseconds backoff(const record& failed, int failures) const;
  void log(log_level level, const record& failed, const std::string& text) const;

  /// At most once a minute: what repeats while nothing gets on. `last` is when it was logged.
  bool is_logged(std::optional<shard_context::clock::time_point>& last);

  failure_policy policy_;
  const shard_context& shard_;
  const bool is_observed_;

  std::atomic<std::uint64_t> ended_ = 0;  // records, whether good or bad
  std::mutex mutex_;
  std::deque<std::uint64_t> failed_;  // the numbers of those in the breaker's window that failed
  std::optional<shard_context::clock::time_point> retries_logged_;
  std::optional<shard_context::clock::time_point> parking_failures_logged_;
};

}  // namespace kclxx::processing
