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

#include "base/printable.hpp"
#include "io/copy_guard.hpp"

namespace kclxx::processing {

/// The circuit of one shard, whose rule circuit_breaker states. Half-open is while a probe runs,
/// which is the one attempt that an open circuit admits.
///
/// Thread safety: all functions may be called from any thread.
class circuit {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// Which failures in a row open it. A form that has nothing else to run while a record fails
  /// counts attempts: a record that failed before the last success does not count. A form that runs
  /// other records meanwhile counts a record at its first failure alone, or the retries of a few
  /// bad records would open the circuit for all.
  enum class counted { attempts, records };

  /// Precondition: the policy is valid.
  circuit(const failure_policy& policy, counted unit);

  /// What an outage was, when it is over.
  struct outage {
    std::int64_t failures;
    std::chrono::steady_clock::duration time;  ///< since the first failure
  };
  /// Whether a success changes nothing.
  [[nodiscard]] bool is_quiet() const noexcept { return is_quiet_.load(std::memory_order_relaxed); }
  /// An attempt succeeded. Returns what it ended, if the circuit was open.
  std::optional<outage> on_success(time_point now);

  /// Names one probe; never used again.
  using probe_id = std::uint64_t;
  static constexpr probe_id no_probe = 0;

  /// A record as the circuit sees it. Who runs the record keeps it until the record is complete.
  struct record_state {
    probe_id probe = no_probe;                 ///< of the attempt that runs
    std::optional<std::uint64_t> successes{};  ///< until its first failure
  };

  enum class state { closed, opens, open };
  /// An attempt failed. `is_outage`: the program says that it is no record's fault. `random` varies
  /// the wait. Returns what the circuit is now.
  state on_failure(time_point now, record_state& failed, bool is_outage, std::uint64_t random);
  /// An attempt failed that tells nothing of an outage: with a permanent error, or in a call that
  /// completes other records.
  void on_own_failure(record_state& failed);

  /// May an attempt begin now? If so it has begun; as which probe, if the circuit is open.
  /// std::nullopt: it may not.
  [[nodiscard]] std::optional<probe_id> try_begin(time_point now) {
    if (!is_open_.load(std::memory_order_relaxed)) return no_probe;
    return try_begin_probe(now);
  }
  /// When the next probe may begin; std::nullopt while the circuit is closed, or a probe runs.
  [[nodiscard]] std::optional<time_point> next_probe() const;
  /// What has failed in a row, in its unit.
  [[nodiscard]] std::int64_t failures() const;
  [[nodiscard]] counted unit() const noexcept { return unit_; }

 private:
  [[nodiscard]] std::optional<probe_id> try_begin_probe(time_point now);
  /// With the mutex held. Returns which probe the attempt was.
  probe_id end_attempt(record_state& failed);
  void wait(time_point now, std::chrono::milliseconds time, std::uint64_t random);

  const counted unit_;
  const std::optional<std::int64_t> most_;  // failures in a row that open it
  const std::chrono::milliseconds max_wait_;
  const std::chrono::milliseconds first_wait_;

  std::atomic<bool> is_quiet_ = false;  // the last attempt succeeded
  std::atomic<bool> is_open_ = false;
  mutable std::mutex mutex_;
  probe_id probe_ = no_probe;  // that runs
  probe_id last_probe_ = no_probe;
  std::uint64_t successes_ = 0;  // the first one, and those that followed a failure
  std::int64_t failures_ = 0;    // since the last success
  time_point first_failure_{};
  time_point next_probe_{};
  std::chrono::milliseconds wait_{0};
};

using detail::is_lease_gone;
using detail::message_of;

/// The policy as processors use it, with the parking lot that it needs. No wait is 0, so that
/// nothing is tried in a hot loop; a day at most, so that sums do not overflow.
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
  failure_handling(failure_policy policy, const shard_context& shard,
                   circuit::counted unit = circuit::counted::attempts);

  /// Calls the handler, which is `call`, and reports the attempt to the observers, if there are
  /// any. `attempts` are those of `first`, the first or only record that the handler gets. Errors:
  /// what the handler throws.
  template <class Function>
  void attempt(const record& first, const failed_attempts& attempts, Function&& call) {
    copies_.leave_if_copied();
    if (!is_observed_) {
      std::forward<Function>(call)();
      return copies_.leave_if_copied();
    }
    const auto began = shard_.now();
    std::exception_ptr thrown;
    try {
      std::forward<Function>(call)();
    } catch (...) {
      thrown = std::current_exception();
    }
    copies_.leave_if_copied();
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

  const io::copy_guard copies_;
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
