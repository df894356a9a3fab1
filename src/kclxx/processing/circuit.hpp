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

  enum class state { closed, opens, open };
  /// An attempt failed, but not with a permanent error; `is_first`: the record's first one.
  /// `random` varies the wait. Returns what the circuit is now.
  state on_failure(time_point now, bool is_first, std::uint64_t random);
  /// A record was skipped or parked for its attempts or its age.
  void on_bad_record();
  /// An attempt ended in another way.
  void on_permanent_error();

  /// Whether an attempt may begin now.
  [[nodiscard]] bool admits(time_point now) const {
    return !is_open_.load(std::memory_order_relaxed) || admits_probe(now);
  }
  /// One begins; while the circuit is open it is the probe.
  void begin() {
    if (is_open_.load(std::memory_order_relaxed)) begin_probe();
  }
  /// When the next probe may begin; std::nullopt while the circuit is closed, or a probe runs.
  [[nodiscard]] std::optional<time_point> next_probe() const;
  /// Attempts in a row, until now.
  [[nodiscard]] std::int64_t failures() const;

 private:
  [[nodiscard]] bool admits_probe(time_point now) const;
  void begin_probe();
  void wait(time_point now, std::uint64_t random);

  const std::int64_t most_;  // failures in a row that open it; 0: none do
  const bool is_limited_;    // a record can be bad without a permanent error
  const std::chrono::milliseconds max_wait_;
  const std::chrono::milliseconds first_wait_;

  std::atomic<bool> is_quiet_ = false;  // the last attempt succeeded
  std::atomic<bool> is_open_ = false;
  mutable std::mutex mutex_;
  std::int64_t left_;  // failures until it opens
  bool has_succeeded_ = false;
  bool is_probing_ = false;
  bool is_alone_ = true;       // all failures since the last success are one record's
  std::int64_t failures_ = 0;  // since the last success
  time_point first_failure_{};
  time_point next_probe_{};
  std::chrono::milliseconds wait_{0};
};

}  // namespace kclxx::processing
