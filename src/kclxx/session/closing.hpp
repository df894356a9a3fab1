// SPDX-License-Identifier: Apache-2.0
// What lies between the return of a callback and the status of its action.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include <kclxx/sequence_position.hpp>

#include "session/checkpoints.hpp"
#include "session/output.hpp"

namespace kclxx::session {

/// What follows, once what can be sent is sent.
enum class closing_step {
  wait,    ///< for an answer, a timer or a request
  status,  ///< the action is closed
  leave,   ///< the session ends without a status, since a status means success
};

/// initialize and leaseLost: there is nothing to persist.
class close_at_once {
 public:
  closing_step next(checkpoints&, time_point, outputs&) { return closing_step::status; }
};

/// processRecords: what may be sent goes out with the status, and is answered later (P39).
class close_records {
 public:
  closing_step next(checkpoints& checkpoints, time_point now, outputs& out);
};

/// shutdownRequested: the last chance. It is awaited, and retried until shutdown_retry_limit has
/// passed (P46). One try is made in any case, even if the callback used that time up or a backoff
/// would outlast it.
class close_shutdown {
 public:
  explicit close_shutdown(time_point last_retry) : last_retry_(last_retry) {}
  [[nodiscard]] time_point last_retry() const noexcept { return last_retry_; }
  closing_step next(checkpoints& checkpoints, time_point now, outputs& out);

 private:
  time_point last_retry_;
  bool has_tried_ = false;
};

/// shardEnded: the end of the shard is persisted once all records are complete (P50, P64).
class close_shard_end {
 public:
  explicit close_shard_end(int max_attempts) : max_attempts_(max_attempts) {}
  closing_step next(checkpoints& checkpoints, time_point now, outputs& out);
  /// The checkpoint of the end has failed.
  void count_failure() noexcept { ++attempts_; }
  [[nodiscard]] bool may_try_again() const noexcept { return attempts_ < max_attempts_; }
  void report_failure(outputs& out) const;
  /// Records are not complete, in checkpoint_mode::manual.
  [[nodiscard]] bool awaits_completion() const noexcept { return awaits_completion_; }
  void report_incomplete(const checkpoints& checkpoints, outputs& out) const;

 private:
  int max_attempts_;
  int attempts_ = 0;
  bool awaits_completion_ = false;
};

using closing_rule = std::variant<close_at_once, close_records, close_shutdown, close_shard_end>;

/// A processor that gave its shard up leaves after this time, if records still arrive (P68).
inline constexpr std::chrono::minutes give_up_patience{5};

/// User code has reported by an exception that the lease is gone (P65). From then on what the
/// daemon sends is answered without a call, except for leaseLost.
class given_up {
 public:
  given_up(std::string reason, time_point now)
      : reason_(std::move(reason)), since_(now), last_report_(now) {}

  /// Its construction, or initialize, threw.
  void lose_processor() noexcept { has_processor_ = false; }
  [[nodiscard]] bool is_called_for(action_kind kind) const noexcept {
    return kind == action_kind::lease_lost && has_processor_;
  }
  /// Records up to there are not processed. False when they have arrived for so long that this
  /// worker has the lease, so that a new processor must take the shard over.
  [[nodiscard]] bool report_unprocessed(const sequence_position& largest, lease_state lease,
                                        time_point now, outputs& out);
  void report_unfinished_end(outputs& out) const;

 private:
  std::string reason_;
  bool has_processor_ = true;
  time_point since_;
  time_point last_report_;
};

}  // namespace kclxx::session
