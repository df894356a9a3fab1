// SPDX-License-Identifier: Apache-2.0
// How an action ends: what is checkpointed before its status, and when no status may follow.
#include <algorithm>
#include <system_error>
#include <utility>

#include "session/session.hpp"

namespace kclxx::session {

void session::on_callback_returned(time_point now, actions& out) {
  if (phase_ == phase::leaving) {
    leave_now(leaving_with_, out);
    return;
  }
  if (phase_ != phase::calling) return;
  phase_ = phase::closing;
  const bool on_return = options_.complete == complete_when::on_return;
  switch (current_->what) {
    case callback::process_records:
      if (!on_return) break;
      checkpoints_.complete_delivered();
      if (!last_automatic_ || now - *last_automatic_ >= options_.checkpoint_interval) {
        if (checkpoints_.is_behind()) last_automatic_ = now;
        checkpoints_.make_complete_pending();
      }
      break;
    case callback::shutdown_requested:
      if (on_return) checkpoints_.complete_delivered();
      checkpoints_.make_complete_pending();
      break;
    case callback::shard_ended:
      checkpoints_.make_shard_end_pending();
      break;
    case callback::initialize:
    case callback::lease_lost:
      break;
  }
  close(now, out);
}

std::error_code session::on_request_for_later(const std::optional<sequence_position>& position) {
  if (has_ended()) return errc::daemon_gone;
  if (checkpoints_.is_lease_gone()) return errc::lease_lost;
  return checkpoints_.request(position);
}

void session::close(time_point now, actions& out) {
  switch (current_->what) {
    case callback::process_records:
      return close_process_records(now, out);
    case callback::shutdown_requested:
      return close_shutdown(now, out);
    case callback::shard_ended:
      return close_shard_end(now, out);
    case callback::initialize:
    case callback::lease_lost:
      return write_status_and_go_on(now, out);
  }
}

void session::close_process_records(time_point now, actions& out) {
  // A checkpoint line may stand unanswered before the status line: it is answered first. But there
  // is at most one, so a higher position waits for the answer to the lower.
  if (checkpoints_.is_in_flight() && checkpoints_.has_more_than_in_flight(now)) return;
  send_next(now, out);
  if (phase_ == phase::closing) write_status_and_go_on(now, out);
}

void session::close_shutdown(time_point now, actions& out) {
  // The last chance: awaited, and retried for as long as the daemon has patience (P46). One try is
  // made in any case, even if the callback used that time up or a backoff would outlast it.
  if (checkpoints_.is_in_flight()) return;
  const bool is_first_try = !tried_last_chance_;
  const bool backoff_is_too_long = checkpoints_.not_before() > *last_retry_;
  if (is_first_try && backoff_is_too_long) {
    send_next(std::max(now, checkpoints_.not_before()), out);
  } else if (is_first_try || now <= *last_retry_) {
    send_next(now, out);
  }
  if (checkpoints_.is_in_flight()) tried_last_chance_ = true;
  if (phase_ != phase::closing || checkpoints_.is_in_flight()) return;
  if (can_be_answered() && checkpoints_.has_pending() && now < checkpoints_.not_before() &&
      checkpoints_.not_before() <= *last_retry_) {
    return;  // the retry timer is running
  }
  if (checkpoints_.is_behind()) {
    out.push_back(log_line{log_level::error,
                           "shutdown: records up to " + to_string(*checkpoints_.complete()) +
                               " are complete but not checkpointed: they will be delivered again"});
  }
  write_status_and_go_on(now, out);
}

void session::close_shard_end(time_point now, actions& out) {
  if (checkpoints_.is_lease_gone() || checkpoints_.is_shard_finished()) {
    write_status_and_go_on(now, out);
    return;
  }
  if (checkpoints_.is_in_flight()) return;
  if (!can_be_answered()) {
    out.push_back(
        log_line{log_level::error, "the input goes on without an answer to the end of the shard"});
    abort(exit_status::shard_end_failed, out);
    return;
  }
  send_next(now, out);  // or the retry timer is running
}

void session::write_status_and_go_on(time_point now, actions& out) {
  out.push_back(write_status{current_->name});
  is_terminal_ = current_->what == callback::lease_lost || current_->what == callback::shard_ended;
  current_.reset();
  last_retry_.reset();
  phase_ = phase::idle;
  if (held_) {
    held_message next = *std::exchange(held_, std::nullopt);
    out.push_back(resume_reading{});
    open(std::move(next.message), std::move(next.batch), now, out);
  }
  // What was held may have opened nothing: an answer, or an action that is not known.
  if (input_ended_ && phase_ == phase::idle) leave_at_end(out);
}

void session::on_callback_threw(const std::string& what, time_point now, actions& out) {
  if (phase_ != phase::calling && phase_ != phase::leaving) return;
  out.push_back(
      log_line{log_level::error, std::string(to_string(current_->what)) + " failed: " + what});
  if (phase_ == phase::leaving) {
    leave_now(leaving_with_, out);
    return;
  }
  // No status, ever. But what was complete before is persisted first, or it would be done again;
  // not at the end of a shard, which any checkpoint might finish (P49).
  phase_ = phase::failing;
  fire_stop(out);
  if (current_->what == callback::shard_ended || !allows_checkpoints()) {
    leave_now(exit_status::callback_failed, out);
    return;
  }
  checkpoints_.make_complete_pending();
  out.push_back(arm_timer{timer::grace, options_.grace_time});
  finish_failing(checkpoints::outcome::persisted, now, out);
}

void session::finish_failing(checkpoints::outcome last, time_point now, actions& out) {
  if (last == checkpoints::outcome::persisted) {
    if (!checkpoints_.is_in_flight()) send_next(now, out);
    if (phase_ == phase::left || checkpoints_.is_in_flight()) return;
  }
  leave_now(exit_status::callback_failed, out);
}

}  // namespace kclxx::session
