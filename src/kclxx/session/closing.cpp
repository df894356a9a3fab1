// SPDX-License-Identifier: Apache-2.0
#include "session/closing.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kclxx::session {

step close_records::next(checkpoints& progress, time_point now, actions& out) {
  // A checkpoint line may be unanswered before the status line: it is answered first. But there
  // is at most one, so a higher position waits for the answer to the lower.
  constexpr auto how = checkpoints::urgency::paced;
  if (progress.has_unanswered() && progress.has_more_than_unanswered(now, how)) return step::wait;
  progress.send(now, how, out);
  return step::status;
}

step close_shutdown::next(checkpoints& progress, time_point now, actions& out) {
  if (progress.has_unanswered()) return step::wait;
  const bool backoff_is_too_long = progress.not_before() > last_retry_;
  if (!has_tried_ && backoff_is_too_long) {
    progress.send(std::max(now, progress.not_before()), checkpoints::urgency::all, out);
  } else if (!has_tried_ || now <= last_retry_) {
    progress.send(now, checkpoints::urgency::all, out);
  }
  if (progress.has_unanswered()) {
    has_tried_ = true;
    return step::wait;
  }
  const bool retry_timer_runs =
      progress.has_pending() && now < progress.not_before() && !backoff_is_too_long;
  if (retry_timer_runs) return step::wait;
  if (progress.has_unpersisted()) {
    out.push_back(log_line{log_level::error,
                           "shutdown: records up to " + to_string(*progress.complete()) +
                               " are complete but not checkpointed: they will be delivered again",
                           progress.complete()});
  }
  return step::status;
}

step close_shard_end::next(checkpoints& progress, time_point now, actions& out) {
  // Without the lease the new owner finishes the shard (P51).
  if (progress.lease() == lease_state::lost || progress.is_shard_finished()) return step::status;
  if (progress.has_unanswered()) return step::wait;
  if (progress.lease() == lease_state::given_up) return step::leave;
  if (progress.is_all_complete()) {
    awaits_completion_ = false;
    progress.make_shard_end_pending();
  } else if (!std::exchange(awaits_completion_, true)) {
    report_incomplete(progress, out);
  }
  progress.send(now, checkpoints::urgency::all, out);
  return step::wait;
}

void close_shard_end::report_failure(actions& out) const {
  out.push_back(log_line{log_level::error, "the end of the shard could not be checkpointed after " +
                                               std::to_string(attempts_) + " attempt(s): leaving"});
}

void close_shard_end::report_incomplete(const checkpoints& progress, actions& out) const {
  const auto complete = progress.complete_or_persisted();
  out.push_back(log_line{log_level::warning,
                         "the end of the shard waits: records up to " +
                             to_string(*progress.delivered()) +
                             " were delivered, but checkpoints were requested " +
                             (complete ? "only up to " + to_string(*complete) : "for none") +
                             "; call async_checkpoint when the rest is done"});
  out.push_back(arm_timer{timer::report, std::chrono::minutes(1)});
}

}  // namespace kclxx::session
