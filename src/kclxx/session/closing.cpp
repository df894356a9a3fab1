// SPDX-License-Identifier: Apache-2.0
#include "session/closing.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace kclxx::session {

closing_step close_records::next(checkpoints& checkpoints, time_point now, outputs& out) {
  // The status may follow a checkpoint that is not answered yet: the daemon answers that first
  // (P39). Only one may be unanswered, so a higher position waits.
  constexpr auto scope = checkpoints::send_scope::paced;
  if (checkpoints.has_unanswered() && checkpoints.has_more_than_unanswered(now, scope))
    return closing_step::wait;
  checkpoints.send(now, scope, out);
  return closing_step::status;
}

closing_step close_shutdown::next(checkpoints& checkpoints, time_point now, outputs& out) {
  if (checkpoints.has_unanswered()) return closing_step::wait;
  const bool backoff_is_too_long = checkpoints.not_before() > last_retry_;
  if (!has_tried_ && backoff_is_too_long) {
    // Each shutdown tries once: as if the backoff had passed.
    checkpoints.send(std::max(now, checkpoints.not_before()), checkpoints::send_scope::all, out);
  } else if (!has_tried_ || now <= last_retry_) {
    checkpoints.send(now, checkpoints::send_scope::all, out);
  }
  if (checkpoints.has_unanswered()) {
    has_tried_ = true;
    return closing_step::wait;
  }
  const bool retry_timer_runs =
      checkpoints.has_pending() && now < checkpoints.not_before() && !backoff_is_too_long;
  if (retry_timer_runs) return closing_step::wait;
  checkpoints.report_unpersisted(log_level::error, "shutdown: ", out);
  return closing_step::status;
}

closing_step close_shard_end::next(checkpoints& checkpoints, time_point now, outputs& out) {
  // Without the lease the new owner finishes the shard (P51).
  if (checkpoints.lease() == lease_state::lost || checkpoints.is_shard_finished())
    return closing_step::status;
  const bool is_complete = checkpoints.is_all_complete();
  if (is_complete) awaits_completion_ = false;  // also while a part of it is unanswered
  if (checkpoints.has_unanswered()) return closing_step::wait;
  if (checkpoints.lease() == lease_state::given_up) return closing_step::leave;
  if (is_complete) {
    checkpoints.make_shard_end_pending();
  } else if (!std::exchange(awaits_completion_, true)) {
    report_incomplete(checkpoints, out);
  }
  checkpoints.send(now, checkpoints::send_scope::all, out);
  return closing_step::wait;
}

void close_shard_end::report_failure(outputs& out) const {
  out.push_back(log_line{log_level::error, "the end of the shard could not be checkpointed after " +
                                               std::to_string(attempts_) + " attempt(s): leaving"});
}

void close_shard_end::report_incomplete(const checkpoints& checkpoints, outputs& out) const {
  const auto complete = checkpoints.complete_or_persisted();
  out.push_back(log_line{log_level::warning,
                         "the end of the shard waits: records up to " +
                             to_string(*checkpoints.delivered()) +
                             " were delivered, but checkpoints were requested " +
                             (complete ? "only up to " + to_string(*complete) : "for none") +
                             "; call async_checkpoint when the rest is done"});
  out.push_back(arm_timer{timer::report, std::chrono::minutes(1)});
}

bool given_up::report_unprocessed(const sequence_position& largest, lease_state lease,
                                  time_point now, outputs& out) {
  if (lease != lease_state::lost && now - since_ >= give_up_patience) {
    out.push_back(log_line{log_level::error,
                           "records still arrive, so this worker has the lease: leaving, for a new "
                           "processor to take the shard over; " +
                               reason_});
    return false;
  }
  if (now - last_report_ < std::chrono::minutes(1)) return true;
  last_report_ = now;
  out.push_back(log_line{log_level::warning, "records up to " + to_string(largest) +
                                                 " are answered, but not processed: " + reason_});
  return true;
}

void given_up::report_unfinished_end(outputs& out) const {
  out.push_back(log_line{log_level::error,
                         "the end of the shard is not checkpointed, and the daemon has not "
                         "reported that the lease is lost: leaving; " +
                             reason_});
}

}  // namespace kclxx::session
