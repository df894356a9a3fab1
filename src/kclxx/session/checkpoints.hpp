// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <kclxx/error.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>

#include "session/action.hpp"

namespace kclxx::session {

using time_point = std::chrono::steady_clock::time_point;

/// The shard's progress: what was delivered, is complete, is pending, on its way, and persisted;
/// and who waits for what. SHARD_END stands for the null checkpoint; it sorts behind every number,
/// so that "covered" is one comparison everywhere.
///
/// Pure; not thread-safe.
class checkpoints {
 public:
  /// How the daemon's answer, or its absence, left things.
  enum class outcome { persisted, retry_later, refused, lease_gone };

  checkpoints(const retry_options& retry, std::uint32_t seed) : retry_(retry), random_(seed) {}

  /// Reading begins behind `position`, which therefore is persisted already.
  void start(const std::optional<sequence_position>& position);
  void deliver(const sequence_position& largest) { raise(delivered_, largest); }
  /// Everything delivered is complete; `make_pending` also wants it persisted.
  void complete_delivered() { raise(complete_, delivered_); }
  void make_complete_pending() { raise(pending_, complete_); }
  void make_shard_end_pending();

  /// Raises the pending position; std::nullopt is everything delivered.
  std::error_code request(const std::optional<sequence_position>& position);

  /// Enters a waiting call, or completes it at once. `at_shard_end`: without a position, the end
  /// of the shard is meant.
  void wait(waiter_id id, const std::optional<sequence_position>& position, bool at_shard_end,
            actions& out);
  /// The waiting call gave up; its position stays pending. False when it was completed already.
  bool abandon(waiter_id id);
  void fail_waiters(std::error_code why, const std::string& name, actions& out);

  /// What to send now, if anything: the highest position that is wanted and not persisted.
  /// `for_waiters_only` leaves out what merely is pending (P49).
  [[nodiscard]] std::optional<sequence_position> next(time_point now, bool for_waiters_only) const;
  void sent(const sequence_position& position) { in_flight_ = position; }
  [[nodiscard]] bool is_in_flight() const noexcept { return in_flight_.has_value(); }
  /// Whether something higher than what is on its way is wanted, and no backoff stands before it.
  [[nodiscard]] bool has_more_than_in_flight(time_point now) const;

  /// The daemon answered what is in flight. Retryable errors arm the retry timer; those who wait
  /// fail when their attempts are used up, or the next would come after `last_retry`.
  outcome answered(const std::optional<std::string>& error, time_point now,
                   const std::optional<time_point>& last_retry, actions& out);
  /// The daemon went on without answering what is in flight, or is gone.
  void not_answered(errc why, actions& out);
  /// The lease is gone: nothing can be persisted any more.
  void lose_lease(std::error_code why, const std::string& name, actions& out);

  /// After a retryable error: when the next try is due.
  [[nodiscard]] time_point not_before() const noexcept { return not_before_; }
  [[nodiscard]] bool is_lease_gone() const noexcept { return lease_gone_; }
  [[nodiscard]] bool is_shard_finished() const;
  /// Whether records are complete, or pending, that are not persisted.
  [[nodiscard]] bool is_behind() const { return !lease_gone_ && complete_ > persisted_; }
  [[nodiscard]] bool has_pending() const { return !lease_gone_ && pending_ > persisted_; }
  [[nodiscard]] const std::optional<sequence_position>& complete() const { return complete_; }

 private:
  struct waiter {
    waiter_id id;
    sequence_position target;
    int attempts = 0;
  };
  using optional_position = std::optional<sequence_position>;

  static void raise(optional_position& position, const optional_position& to) {
    if (position < to) position = to;
  }
  [[nodiscard]] std::error_code check(const sequence_position& position) const;
  [[nodiscard]] optional_position wanted(bool for_waiters_only) const;
  std::chrono::milliseconds next_backoff();
  template <class Predicate>
  void complete_if(Predicate chosen, std::error_code result, const std::string& name, actions& out);

  retry_options retry_;
  std::minstd_rand random_;
  optional_position delivered_;
  optional_position complete_;
  optional_position pending_;
  optional_position in_flight_;
  optional_position persisted_;
  std::vector<waiter> waiters_;
  bool lease_gone_ = false;
  std::chrono::milliseconds backoff_{0};
  time_point not_before_ = time_point::min();
};

}  // namespace kclxx::session
