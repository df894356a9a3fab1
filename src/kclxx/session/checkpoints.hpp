// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <kclxx/error.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>

#include "session/output.hpp"

namespace kclxx::session {

using time_point = std::chrono::steady_clock::time_point;

enum class lease_state {
  held,      ///< as far as is known
  given_up,  ///< user code reports that it is gone; the daemon has not yet
  lost,      ///< the daemon has reported it
};

/// The shard's progress: the positions up to which records were delivered, are complete, are
/// pending and are persisted; the checkpoint that is unanswered; and the calls that wait. SHARD_END
/// is the null checkpoint. It sorts after every number, so that a comparison tells whether a
/// position is covered.
///
/// Pure. Thread safety: none.
class checkpoints {
 public:
  /// How the daemon's answer, or its absence, left things.
  enum class outcome { persisted, retry_later, refused, lease_gone };
  /// Which requests may be sent now.
  enum class send_scope {
    waiters,   ///< the targets of waiting calls
    handlers,  ///< the targets of waiting calls, and of handlers that end before the last record
    paced,     ///< everything pending, if a call waits or the interval has passed
    all,       ///< everything pending
  };

  explicit checkpoints(const run_options& options, std::uint32_t seed)
      : retry_(options.retry), interval_(options.checkpoint_interval), random_(seed) {}

  /// Reading begins after `position`, which therefore is persisted already.
  void start(const std::optional<sequence_position>& position);
  void deliver(const sequence_position& largest) { raise(delivered_, largest); }
  /// The daemon has reported the end of the shard.
  void reach_end() noexcept { is_at_end_ = true; }
  /// The callback that got what was delivered has returned.
  void delivered_returned() { raise(returned_, delivered_); }
  /// Everything delivered is complete.
  void complete_delivered() { raise(complete_, delivered_); }
  void make_complete_pending() { raise(pending_, complete_); }
  void make_shard_end_pending();

  /// Enters a waiting call, or completes it at once. Its target without a position: from a callback
  /// everything delivered, from any further thread what callbacks have returned from; with
  /// `at_shard_end` the end of the shard.
  void checkpoint(waiter_id id, const std::optional<sequence_position>& position,
                  bool from_callback, bool at_shard_end, outputs& out);
  /// Enters a request that nobody waits for. Its outcome goes to `id`, or without an id to the log.
  void async_checkpoint(const std::optional<waiter_id>& id,
                        const std::optional<sequence_position>& position, bool from_callback,
                        outputs& out);
  /// The deadline of the waiting call has passed; its position stays pending. False when it was
  /// completed already.
  bool abandon(waiter_id id);
  void fail_waiters(std::error_code error, outputs& out);

  /// Sends the highest position that is wanted and not persisted. False when nothing can be sent.
  bool send(time_point now, send_scope scope, outputs& out);
  /// Arms the timer for what is pending, if only the interval is in its way.
  void arm_pace(time_point now, outputs& out);
  [[nodiscard]] const std::optional<sequence_position>& unanswered() const noexcept {
    return unanswered_;
  }
  [[nodiscard]] bool has_unanswered() const noexcept { return unanswered_.has_value(); }
  /// Whether a higher position could be sent after the answer to the present checkpoint.
  [[nodiscard]] bool has_more_than_unanswered(time_point now, send_scope scope) const;

  /// The daemon answered the checkpoint. After a retryable error, a call that waits fails when its
  /// attempts are used up, or when the next attempt would come after `last_retry`. The retry timer
  /// is armed if a position is still wanted.
  outcome answered(const std::optional<std::string>& error, time_point now,
                   const std::optional<time_point>& last_retry, outputs& out);
  /// The daemon continued without an answer to the checkpoint, or is gone.
  void not_answered(errc reason, outputs& out);
  /// Drops the requests that no call waits for, and completes their handlers with `reason`.
  void drop_pending(errc reason, outputs& out);
  /// The lease is gone: nothing can be persisted any more. What was sent is still answered.
  void lose_lease(std::error_code error, outputs& out);
  void give_up(outputs& out);

  /// After a retryable error: when the next attempt is due.
  [[nodiscard]] time_point not_before() const noexcept { return not_before_; }
  [[nodiscard]] lease_state lease() const noexcept { return lease_; }
  [[nodiscard]] bool is_shard_finished() const;
  /// If complete records are not persisted, logs up to which position.
  void report_unpersisted(log_level level, const char* occasion, outputs& out) const;
  [[nodiscard]] bool has_pending() const { return has_lease() && pending_ > persisted_; }
  /// Whether all that was delivered is complete.
  [[nodiscard]] bool is_all_complete() const { return delivered_ <= complete_or_persisted(); }
  [[nodiscard]] const std::optional<sequence_position>& delivered() const { return delivered_; }
  [[nodiscard]] const std::optional<sequence_position>& persisted() const { return persisted_; }
  [[nodiscard]] std::optional<sequence_position> complete_or_persisted() const {
    return complete_ < persisted_ ? persisted_ : complete_;
  }

 protected:  // for the test of the invariants
  void sent(const sequence_position& position, time_point now);

 private:
  struct waiting_call {
    waiter_id id;
    sequence_position target;
    int attempts = 0;
  };
  struct waiting_handler {
    waiter_id id;
    sequence_position target;
  };
  using optional_position = std::optional<sequence_position>;

  [[nodiscard]] bool has_lease() const noexcept { return lease_ == lease_state::held; }
  static void raise(optional_position& position, const optional_position& least) {
    if (position < least) position = least;
  }
  /// TRIM_HORIZON: the target of an empty batch.
  static bool covers_nothing(const sequence_position& position);
  [[nodiscard]] std::error_code check(const sequence_position& position) const;
  /// What a request without a position covers.
  [[nodiscard]] const optional_position& everything(bool from_callback) const noexcept;
  /// What a request wants to be persisted. std::nullopt: nothing, or `ec` is why it is refused.
  [[nodiscard]] optional_position target_of(const optional_position& position,
                                            const optional_position& otherwise,
                                            std::error_code& ec) const;
  [[nodiscard]] optional_position next(time_point now, send_scope scope) const;
  [[nodiscard]] bool is_paced(time_point now) const;
  [[nodiscard]] optional_position wanted(time_point now, send_scope scope) const;
  void end_backoff();
  template <class Predicate>
  void notify_calls_if(Predicate chosen, std::error_code result, outputs& out);
  void notify_handlers(const sequence_position& up_to, std::error_code result, outputs& out);

  retry_options retry_;
  std::chrono::milliseconds interval_;
  std::minstd_rand random_;
  optional_position delivered_;
  optional_position returned_;
  optional_position complete_;
  optional_position pending_;
  optional_position unanswered_;
  optional_position persisted_;
  std::vector<waiting_call> calls_;
  std::deque<waiting_handler> handlers_;  // sorted by target; each record may have a handler
  lease_state lease_ = lease_state::held;
  bool is_at_end_ = false;
  int consecutive_failures_ = 0;
  time_point not_before_ = time_point::min();
  std::optional<time_point> last_sent_;
  std::optional<time_point> pace_armed_for_;
};

}  // namespace kclxx::session
