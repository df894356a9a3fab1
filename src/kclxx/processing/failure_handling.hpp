// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
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
#include "processing/circuit.hpp"

namespace kclxx::processing {

using detail::message_of;

/// The same as detail::is_lease_gone; also true for the process_ended of the test kit.
bool is_lease_gone(const std::exception_ptr& thrown);

/// No wait is 0, so that nothing is tried in a hot loop; a day at most, so that sums do not
/// overflow.
failure_policy with_limited_waits(failure_policy policy);
/// The policy as processors use it: with_limited_waits, and with the parking lot that it needs.
/// Errors: std::invalid_argument when it makes no sense.
failure_policy checked(failure_policy policy);

/// The failed attempts of one record. Who runs the record keeps it until the record is complete.
struct failed_attempts {
  int count = 0;    ///< in all
  int counted = 0;  ///< for max_attempts; 0 again when parking has failed
  std::string first_error{};
  circuit::record_state at_circuit{};
};

/// The event of an attempt, which threw or did not.
observer::record_attempted attempt_event(const record& attempted, int attempt,
                                         std::chrono::nanoseconds duration,
                                         const std::exception_ptr& thrown);

/// What becomes of a record that failed.
struct failure_decision {
  enum class kind {
    retry,       ///< after `delay`
    complete,    ///< it was skipped or parked
    stop,        ///< the exception leaves the callback, once what is complete is checkpointed
    lease_gone,  ///< the same, at once: the record did not fail, and nothing can be persisted
  };
  kind outcome;
  std::chrono::milliseconds delay{0};  ///< of retry
};

/// Decides for every form of processing what becomes of a record that failed: parks it, counts it,
/// and logs what it does.
///
/// 1. Call a handler; a synchronous one through attempt(), which reports its end to observers.
/// 2. Call on_success when an attempt succeeded, and on_retry_success too when it was not the
///    record's first one.
/// 3. Call on_failure when a handler threw, and do what it decides.
///
/// Thread safety: all functions may be called from any thread, for different records.
/// Lifetime: `shard` outlives it.
class failure_handling {
 public:
  /// Precondition: the policy is checked(). Errors: what the parking lot's prepare() throws.
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
    if (!shard_.stop_token().stop_requested()) {
      service_->observe(attempt_event(first, attempts.count + 1, shard_.now() - began, thrown));
    }
    if (thrown) std::rethrow_exception(thrown);
  }

  /// The circuit's, for a form that calls several handlers at the same time.
  [[nodiscard]] std::optional<circuit::probe_id> try_begin(circuit::time_point now) {
    return circuit_.try_begin(now);
  }
  [[nodiscard]] std::optional<circuit::time_point> next_probe() const {
    return circuit_.next_probe();
  }

  /// Returns whether that closed the circuit.
  bool on_success() { return !circuit_.is_quiet() && close(); }
  void on_retry_success(const sequence_position& position, int attempt);

  /// `attempts` is the record's; it counts this one. `thrown` becomes what leaves the callback, if
  /// the decision is that something does. Errors: what policy.is_permanent throws. Blocking: while
  /// a record is parked.
  [[nodiscard]] failure_decision on_failure(const record& failed, failed_attempts& attempts,
                                            std::exception_ptr& thrown);

  /// For a form that processes one record after the other: on_failure, and the wait before a
  /// further attempt. False when the record is tried again. Errors: what ends the processing.
  /// Blocking: as on_failure, and until the next attempt.
  [[nodiscard]] bool is_complete_after(const record& failed, failed_attempts& attempts,
                                       std::exception_ptr thrown);

 private:
  [[nodiscard]] bool is_permanent(const std::exception_ptr& thrown) const;
  /// Why the record is bad though its error is not permanent, after so many attempts; empty: it is
  /// not.
  [[nodiscard]] std::string why_bad(const record& failed, int counted) const;
  failure_decision on_bad_record(const record& failed, failed_attempts& attempts,
                                 std::exception_ptr& thrown, const std::string& error,
                                 const std::string& reason);
  [[nodiscard]] failure_decision retry(const record& failed, const failed_attempts& attempts,
                                       const std::string& error);
  [[nodiscard]] failure_decision retry_parking(const record& failed, failed_attempts& attempts,
                                               const std::string& error);
  [[nodiscard]] std::chrono::milliseconds backoff(const record& failed,
                                                  const failed_attempts& attempts) const;
  [[nodiscard]] std::uint64_t random(const record& failed, int failures) const;
  void log(log_level level, const std::string& beginning, const record& subject,
           const std::string& ending) const;
  bool close();
  void report_open(const record& failed, const std::string& error);

  /// True at most once a minute, for what repeats while no record succeeds. Sets `last`, when it
  /// was logged.
  bool acquire_log_turn(std::optional<shard_context::clock::time_point>& last);

  const failure_policy policy_;
  const shard_context& shard_;
  const std::shared_ptr<detail::shard_service> service_;
  const bool is_observed_;
  circuit circuit_;

  std::atomic<bool> is_failure_logged_ = false;  // and no success since
  std::mutex mutex_;
  std::optional<shard_context::clock::time_point> retries_logged_;
  std::optional<shard_context::clock::time_point> parking_failures_logged_;
};

}  // namespace kclxx::processing
