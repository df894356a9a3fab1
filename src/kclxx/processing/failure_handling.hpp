// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
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
  int counted = 0;  ///< for max_attempts
  std::string first_error{};
  circuit::record_state at_circuit{};
};

/// The event of an attempt, which threw or did not.
observer::record_attempted attempt_event(const record& attempted, int attempt,
                                         std::chrono::nanoseconds duration,
                                         const std::exception_ptr& thrown);

/// A record that failed, and what becomes of it.
struct failure {
  enum class outcome {
    retry,       ///< after `delay`
    complete,    ///< it was skipped or parked
    stop,        ///< `thrown` leaves the callback, once what is complete is checkpointed
    lease_gone,  ///< the same, at once: the record did not fail, and nothing can be persisted
  };
  const kclxx::record* record;
  failed_attempts* attempts;  ///< of the record; the decision counts this one
  std::exception_ptr thrown;  ///< by its attempt; after the decision, what leaves the callback
  outcome decided = outcome::retry;
  std::chrono::milliseconds delay{0};
  std::string bad_since{};  ///< why it is to be parked; empty: it is not
};

/// Decides for every form of processing what becomes of a record that failed: parks it, counts it,
/// and logs what it does.
///
/// 1. Call a handler; a synchronous one through attempt(), which reports its end to observers.
/// 2. Call on_success when an attempt succeeded, and on_retry_success too when it was not the
///    record's first one.
/// 3. Call decide when a handler threw, and do what it decides.
///
/// Thread safety: all functions may be called from any thread, for different records.
/// Lifetime: `shard` outlives it.
class failure_handling {
 public:
  /// Precondition: the policy is checked(). Errors: a lost lease that the parking lot's prepare()
  /// throws; any other failure of it is logged, and prepare() is called again before a record is
  /// parked.
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

  [[nodiscard]] bool parks() const { return policy_.bad_record == bad_record::park; }

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

  /// Whether the program says that this is no record's fault.
  [[nodiscard]] bool is_outage(const std::exception_ptr& thrown) const {
    return kind_of(thrown) == error_kind::outage;
  }

  /// Decides on the records that failed in one call of a handler, at least one. `has_completed`:
  /// the call completed others. Errors: what policy.is_permanent throws. Blocking: while records
  /// are parked, all with one call.
  void decide(std::span<failure> failures, bool has_completed = false) {
    judge(failures, has_completed);
    park(failures);
  }
  /// The two steps of decide(). The first one leaves those to the second that have `bad_since`.
  /// Blocking: judge() does not; park() while the records are parked.
  void judge(std::span<failure> failures, bool has_completed = false);
  void park(std::span<failure> failures);

  /// For a form that processes one record after the other: decide, and the wait before a further
  /// attempt. False when the record is tried again. Errors: what ends the processing.
  /// Blocking: as decide, and until the next attempt.
  [[nodiscard]] bool is_complete_after(const record& failed, failed_attempts& attempts,
                                       std::exception_ptr thrown);

 private:
  enum class error_kind { temporary, permanent, outage };
  [[nodiscard]] error_kind kind_of(const std::exception_ptr& thrown) const;
  circuit::state notice(const failure& one, error_kind kind);
  /// Why the record is bad; empty: it is not.
  [[nodiscard]] std::string why_bad(const failure& one, error_kind kind) const;
  void give_up(failure& one);
  void retry(failure& one);
  void prepare_lot();
  void retry_parking(std::span<failure> failures, const std::exception_ptr& of_park);
  [[nodiscard]] std::chrono::milliseconds backoff(const failure& one) const;
  [[nodiscard]] std::uint64_t random(const record& failed, int failures) const;
  void log(log_level level, const std::string& beginning, const record& subject,
           const std::string& ending) const;
  bool close();
  void report_open(const failure& last, bool is_outage);

  /// True at most once a minute, for what repeats while no record succeeds. Sets `last`, when it
  /// was logged.
  bool acquire_log_turn(std::optional<shard_context::clock::time_point>& last);

  const failure_policy policy_;
  const shard_context& shard_;
  const std::shared_ptr<detail::shard_service> service_;
  const bool is_observed_;
  circuit circuit_;

  std::atomic<bool> is_lot_prepared_ = false;
  std::atomic<bool> is_failure_logged_ = false;  // and no success since
  std::mutex mutex_;
  std::optional<shard_context::clock::time_point> retries_logged_;
  std::optional<shard_context::clock::time_point> parking_failures_logged_;
};

}  // namespace kclxx::processing
