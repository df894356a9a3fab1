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
#include "processing/verdict.hpp"

namespace kclxx::processing {

/// The circuit of one shard, whose rule circuit_breaker states. It is half-open while a probe runs,
/// which is the one attempt that an open circuit admits.
///
/// Thread safety: all functions may be called from any thread.
class circuit {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// Which failures in a row open it. A form that has nothing else to run while a record fails
  /// counts attempts, but not those of a record that failed before the last success. A form that
  /// runs other records meanwhile counts a record at its first failure alone, or the retries of a
  /// few bad records would open the circuit for all.
  enum class counted { attempts, records };

  /// Precondition: the policy is valid.
  circuit(const failure_policy& policy, counted unit);

  /// What is told of an outage that is over.
  struct outage {
    std::int64_t failures;
    std::chrono::steady_clock::duration time;  ///< since the first failure
  };
  /// Whether a success would change nothing. It is asked after each attempt, and takes no lock.
  [[nodiscard]] bool is_quiet() const noexcept { return is_quiet_.load(std::memory_order_relaxed); }
  /// An attempt succeeded. Returns what it ended, if the circuit was open.
  std::optional<outage> on_success(time_point now);

  /// Names one probe, and is never used again.
  using probe_id = std::uint64_t;
  static constexpr probe_id no_probe = 0;

  /// What the circuit knows of a record. The form keeps it until the record is complete.
  struct record_state {
    probe_id probe = no_probe;  ///< as which the attempt that runs was admitted
    std::optional<std::uint64_t> successes_at_first_failure{};
    bool has_failed = false;  ///< the circuit was told of a failed attempt before this one
  };

  /// An attempt has failed, and the circuit is told later, by one of the functions below. A success
  /// in between ends the row of failures, this one included.
  void note_failure(record_state& failed);

  enum class state { closed, opens, open };
  /// An attempt failed. `is_outage`: the program says that it is no record's fault. `random` varies
  /// the wait. Returns what the circuit is now.
  state on_failure(time_point now, record_state& failed, bool is_outage, std::uint64_t random);
  /// An attempt failed that tells nothing of an outage: with a permanent error, or in a call that
  /// completes other records.
  void on_own_failure(record_state& failed);

  /// Begins an attempt, and returns as which probe: no_probe while the circuit is closed.
  /// std::nullopt: no attempt may begin now.
  [[nodiscard]] std::optional<probe_id> try_begin(time_point now) {
    if (!is_open_.load(std::memory_order_relaxed)) return no_probe;
    return try_begin_probe(now);
  }
  /// When the next probe may begin; std::nullopt while the circuit is closed, or a probe runs.
  [[nodiscard]] std::optional<time_point> next_probe() const;
  /// How many failures in a row there were, in this unit.
  [[nodiscard]] std::int64_t failures() const;
  [[nodiscard]] counted unit() const noexcept { return unit_; }

 private:
  [[nodiscard]] std::optional<probe_id> try_begin_probe(time_point now);
  /// Precondition: the mutex is held. Returns as which probe the attempt was admitted.
  probe_id end_attempt(record_state& failed);
  void set_next_probe(time_point now, std::chrono::milliseconds wait, std::uint64_t random);

  const counted unit_;
  const std::optional<std::int64_t> failures_to_open_;
  const std::chrono::milliseconds max_wait_;
  const std::chrono::milliseconds first_wait_;

  // These two are written with the mutex held, and read without it before each attempt. A reader
  // that sees an old value begins one more attempt, or takes the mutex in vain.
  std::atomic<bool> is_quiet_ = false;  // the last attempt succeeded
  std::atomic<bool> is_open_ = false;

  mutable std::mutex mutex_;  // guards what follows
  probe_id running_probe_ = no_probe;
  probe_id last_probe_ = no_probe;
  std::uint64_t successes_ = 0;  // counts the first success, and each that followed a failure
  std::int64_t failures_ = 0;    // since the last success
  time_point first_failure_{};
  time_point next_probe_{};
  std::chrono::milliseconds wait_{0};
};

using detail::is_lease_gone;
using detail::message_of;

/// The policy as processors use it, with the parking lot that it needs. Each wait is between 1 ms,
/// so that nothing is tried in a hot loop, and a day, so that sums do not overflow.
/// Errors: std::invalid_argument when it makes no sense.
failure_policy checked(failure_policy policy);

/// The failed attempts of one record. The form keeps them until the record is complete.
struct failed_attempts {
  int count = 0;    ///< all of them
  int counted = 0;  ///< those that failure_policy::max_attempts counts
  std::string first_error{};
  circuit::record_state at_circuit{};
};

/// Calls the function, and returns what it throws. Null when it returns.
template <class Function>
std::exception_ptr exception_of(Function&& call) {
  try {
    std::forward<Function>(call)();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

/// The event of an attempt. `thrown` is null when it succeeded.
observer::record_attempted attempt_event(const record& attempted, int attempt,
                                         std::chrono::nanoseconds duration,
                                         const std::exception_ptr& thrown);

/// A record of which an attempt failed. `verdict` is judge()'s, and park()'s after it.
struct failure {
  const kclxx::record* record;
  failed_attempts* attempts;  ///< of the record; judge() adds this one
  std::exception_ptr thrown;  ///< by the attempt
  error_kind kind = error_kind::temporary;
  processing::verdict verdict{};
};

/// Carries out what verdict.hpp decides on a record that failed, for every form of processing:
/// counts the attempt, tells the circuit, logs, reports to observers, and parks.
///
/// 1. Call a handler; a synchronous one through attempt(), which reports its end to observers.
/// 2. Call on_success when an attempt succeeded, and on_retry_success too when it was not the
///    record's first one.
/// 3. When a handler threw, call judge() and park(), or decide() for both. Do what the verdict
/// says.
///
/// Thread safety: all functions may be called from any thread, for different records.
/// Lifetime: `shard` outlives it.
class failure_handling {
 public:
  /// From now on the form that makes it decides which records are complete; see
  /// shard_service::track_completion. Precondition: the policy is checked(). Errors: a lost lease
  /// that the parking lot's prepare() throws; any other failure of it is logged, and prepare() is
  /// called again before a record is parked.
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
    const auto thrown = exception_of(std::forward<Function>(call));
    copies_.leave_if_copied();
    if (!shard_.stop_token().stop_requested()) {
      service_->observe(attempt_event(first, attempts.count + 1, shard_.now() - began, thrown));
    }
    if (thrown) std::rethrow_exception(thrown);
  }

  [[nodiscard]] bool parks() const { return policy_.bad_record == bad_record::park; }

  /// See circuit. For a form that calls several handlers at the same time.
  [[nodiscard]] std::optional<circuit::probe_id> try_begin(circuit::time_point now) {
    return circuit_.try_begin(now);
  }
  [[nodiscard]] std::optional<circuit::time_point> next_probe() const {
    return circuit_.next_probe();
  }

  /// For a form that calls judge() on another thread, or later: an attempt has failed.
  void note_failure(failed_attempts& attempts) { circuit_.note_failure(attempts.at_circuit); }
  /// Returns whether that closed the circuit.
  bool on_success() { return !circuit_.is_quiet() && close(); }
  void on_retry_success(const sequence_position& position, int attempt);

  [[nodiscard]] error_kind kind_of(const std::exception_ptr& thrown) const {
    return processing::kind_of(thrown, policy_);
  }

  /// Gives the verdict on the records that failed in one call of a handler, at least one.
  /// `has_completed`: the call completed other records. When a verdict ends the processing, those
  /// after it stay as they are. Errors: what policy.is_permanent throws. Blocking: no.
  void judge(std::span<failure> failures, bool has_completed = false);
  /// Parks all whose verdict says so, with one call of the lot. Their verdict is then complete, or,
  /// when they could not be parked, retry or lease_gone. Blocking: while they are parked.
  void park(std::span<failure> failures);
  /// judge() and park(), for one record. Errors and blocking: theirs.
  [[nodiscard]] verdict decide(const record& failed, failed_attempts& attempts,
                               std::exception_ptr thrown);
  /// For a form that processes one call after the other. Returns true when the record is complete,
  /// and false when it is to be tried again now. Errors: the exception that ends the processing.
  /// Blocking: until the next attempt.
  [[nodiscard]] bool is_complete_after(const verdict& decided) const;

 private:
  [[nodiscard]] failure_facts facts_of(const failure& failed) const;
  [[nodiscard]] circuit::state tell_circuit(const failure& failed);
  void report(const failure& judged);
  void report_retry(const failure& failed, const std::exception_ptr& cause);
  void prepare_lot();
  [[nodiscard]] std::uint64_t random(const failure& failed) const;
  /// Writes a line: `beginning`, the record with its key, `ending`.
  void log(log_level level, const std::string& beginning, const record& subject,
           const std::string& ending) const;
  bool close();
  void report_open(const failure& last);
  /// Returns true at most once a minute, for what repeats while no record succeeds. `last_logged`
  /// is one of the two below.
  bool acquire_log_turn(std::optional<shard_context::clock::time_point>& last_logged);

  const io::copy_guard copies_;
  const failure_policy policy_;
  const shard_context& shard_;
  const std::shared_ptr<detail::shard_service> service_;
  const bool is_observed_;
  circuit circuit_;

  std::atomic<bool> is_lot_prepared_ = false;
  std::atomic<bool> is_failure_logged_ = false;  // a retry was logged, and no success since
  std::mutex mutex_;                             // guards what follows
  std::optional<shard_context::clock::time_point> retry_logged_;
  std::optional<shard_context::clock::time_point> parking_failure_logged_;
};

}  // namespace kclxx::processing
