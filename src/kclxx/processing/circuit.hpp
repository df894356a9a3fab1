// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include <kclxx/processing/failure_policy.hpp>

namespace kclxx::processing {

/// The circuit of one shard, whose rule circuit_breaker states. Half-open is while a probe runs,
/// which is the one attempt that an open circuit admits.
///
/// Thread safety: all functions may be called from any thread.
class circuit {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Precondition: the policy is valid.
  explicit circuit(const failure_policy& policy);

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
  /// Failed attempts in a row.
  [[nodiscard]] std::int64_t failures() const;

 private:
  [[nodiscard]] std::optional<probe_id> try_begin_probe(time_point now);
  /// With the mutex held. Returns which probe the attempt was.
  probe_id end_attempt(record_state& failed);
  void wait(time_point now, std::chrono::milliseconds time, std::uint64_t random);

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

}  // namespace kclxx::processing
