// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"

namespace kclxx::session {

session::session(const run_options& options, bool input_is_file, std::uint32_t seed)
    : options_(options), input_is_file_(input_is_file), checkpoints_(options, seed) {}

bool session::allows_checkpoints() const noexcept {
  // The daemon answers a checkpoint in initialize and leaseLost with InvalidStateException (P38).
  return is_open() && (current_->what == action_kind::process_records ||
                       current_->what == action_kind::shard_ended ||
                       current_->what == action_kind::shutdown_requested);
}

void session::on_message(protocol::message message, record_batch batch, time_point now,
                         actions& out) {
  if (has_ended()) return;
  const auto* answer = std::get_if<protocol::checkpoint_answer>(&message.body);
  if (answer != nullptr && checkpoints_.has_unanswered()) {
    on_answer(*answer, now, out);
  } else if (is_open()) {
    // Only a plain file is ahead of the dialogue: a daemon waits for the status first.
    hold(std::move(message), std::move(batch), now, out);
  } else {
    open(std::move(message), std::move(batch), now, out);
  }
}

bool session::can_be_answered() const {
  return !input_ended_ &&
         (!held_ || std::holds_alternative<protocol::checkpoint_answer>(held_->message.body));
}

void session::hold(protocol::message message, record_batch batch, time_point now, actions& out) {
  const bool is_answer = std::holds_alternative<protocol::checkpoint_answer>(message.body);
  const bool is_lease_lost = std::holds_alternative<protocol::lease_lost>(message.body);
  held_ = held_message{std::move(message), std::move(batch)};
  out.push_back(pause_reading{});
  if (is_answer) return;  // the answer to a checkpoint which the callback may still ask for
  const bool waited = checkpoints_.has_unanswered();
  if (is_lease_lost) {
    checkpoints_.lose_lease(errc::lease_lost, out);
    is_loss_reported_ = true;
  }
  checkpoints_.not_answered(errc::not_answered, out);
  if (!waited) return;
  if (phase_ == phase::failing) {
    finish_failing(checkpoints::outcome::refused, now, out);
  } else if (phase_ == phase::closing) {
    close(now, out);
  }
}

bool session::is_for_unanswered(const protocol::checkpoint_answer& answer) const {
  // A file's answers are those to another run's checkpoints.
  if (input_is_file_) return true;
  const sequence_position& sent = *checkpoints_.unanswered();
  return answer.position ? answer.position == sent : !sent.is_number();
}

void session::on_answer(const protocol::checkpoint_answer& answer, time_point now, actions& out) {
  if (!is_for_unanswered(answer)) {
    on_bad_line("the daemon answered a checkpoint at " +
                    (answer.position ? to_string(*answer.position) : "the end of the shard") +
                    ", which is not the one that was sent",
                out);
    return;
  }
  answer_ = answer;
  const bool for_shard_end = phase_ == phase::closing &&
                             current_->what == action_kind::shard_ended &&
                             !checkpoints_.unanswered()->is_number();
  if (for_shard_end && answer.error) ++current_->end_attempts;
  const bool end_has_no_attempt_left =
      for_shard_end && current_->end_attempts >= options_.retry.max_attempts;
  // Nothing is tried again in a process that is about to leave.
  const bool is_last = end_has_no_attempt_left || phase_ == phase::failing;
  const auto last_retry = is_last    ? time_point::min()
                          : current_ ? current_->last_retry
                                     : std::nullopt;
  const auto outcome = checkpoints_.answered(answer.error, now, last_retry, out);
  if (outcome == checkpoints::outcome::lease_gone) {
    is_loss_reported_ = true;
    fire_stop(out);
  }
  if (phase_ == phase::failing) {
    finish_failing(outcome, now, out);
    return;
  }
  if ((for_shard_end && outcome == checkpoints::outcome::refused) ||
      (end_has_no_attempt_left && outcome == checkpoints::outcome::retry_later)) {
    // Success is never reported: the shard's children would never be read (P50).
    out.push_back(log_line{log_level::error,
                           "the end of the shard could not be checkpointed after " +
                               std::to_string(current_->end_attempts) + " attempt(s): leaving"});
    abort(exit_status::shard_end_failed, out);
    return;
  }
  if (phase_ == phase::closing) {
    close(now, out);
  } else {
    send_next(now, out);
  }
}

void session::open(protocol::message message, record_batch batch, time_point now, actions& out) {
  checkpoints_.not_answered(errc::not_answered, out);
  const std::optional<action_kind> what = message.kind();
  if (std::holds_alternative<protocol::checkpoint_answer>(message.body)) {
    drop_unasked_answer(out);
    return;
  }
  if (!what) {
    answer_unknown(message.action, out);
    return;
  }
  if (is_terminal_ || (*what == action_kind::initialize) != (phase_ == phase::starting)) {
    on_bad_line("the daemon sent " + message.action +
                    (is_terminal_                ? " after the last action of the shard"
                     : phase_ == phase::starting ? " before initialize"
                                                 : " a second time"),
                out);
    return;
  }
  call next{*what, std::move(batch), {}, {}};
  std::optional<sequence_position> largest;
  if (auto* initialize = std::get_if<protocol::initialize>(&message.body)) {
    checkpoints_.start(initialize->start_position);
    next.shard_id = std::move(initialize->shard_id);
    next.start_position = initialize->start_position;
  } else if (auto* records = std::get_if<protocol::process_records>(&message.body)) {
    largest = records->largest;
    if (largest) checkpoints_.deliver(*largest);
  } else if (*what == action_kind::lease_lost) {
    checkpoints_.lose_lease(errc::lease_lost, out);
    is_loss_reported_ = true;
    fire_stop(out);
  }
  current_ = open_action{*what, std::move(message.action)};
  if (*what == action_kind::shutdown_requested) {
    current_->last_retry = now + options_.shutdown_retry_limit;
  }
  call_or_answer(std::move(next), largest, now, out);
}

void session::call_or_answer(call next, const std::optional<sequence_position>& largest,
                             time_point now, actions& out) {
  const bool is_called = !given_up_ || (next.what == action_kind::lease_lost && has_processor_);
  if (is_called) {
    phase_ = phase::calling;
    is_flushed_ = false;
    out.push_back(std::move(next));
    send_next(now, out);
    return;
  }
  phase_ = phase::closing;
  if (largest) report_unprocessed(*largest, now, out);
  if (phase_ == phase::closing) close(now, out);
}

/// P67, P68
void session::report_unprocessed(const sequence_position& largest, time_point now, actions& out) {
  if (!is_loss_reported_ && now - given_up_->since >= give_up_patience) {
    out.push_back(log_line{log_level::error,
                           "records still arrive, so this worker has the lease: leaving, for a new "
                           "processor to take the shard over; " +
                               given_up_->why});
    abort(exit_status::callback_failed, out);
    return;
  }
  if (now - given_up_->last_report < std::chrono::minutes(1)) return;
  given_up_->last_report = now;
  out.push_back(
      log_line{log_level::warning, "records up to " + to_string(largest) +
                                       " are answered, but not processed: " + given_up_->why});
}

void session::drop_unasked_answer(actions& out) {
  const std::string what = "an answer to a checkpoint that was not asked for";
  if (input_is_file_) {
    out.push_back(log_line{log_level::info, "skipped " + what});
  } else {
    on_bad_line("the daemon sent " + what, out);
  }
}

void session::answer_unknown(const std::string& name, actions& out) {
  out.push_back(log_line{log_level::warning,
                         "the daemon sent an action that this version does "
                         "not know; answering it: " +
                             name});
  out.push_back(write_status{name});
}

checkpoints::urgency session::urgency() const {
  const bool is_last_chance =
      phase_ == phase::failing || current_->what != action_kind::process_records;
  if (phase_ != phase::calling) {
    return is_last_chance ? checkpoints::urgency::all : checkpoints::urgency::paced;
  }
  // What is pending goes out with the status. It could also finish the shard before the callback
  // has (P49).
  if (!is_flushed_ || current_->what == action_kind::shard_ended)
    return checkpoints::urgency::waiters;
  return checkpoints::urgency::paced;
}

void session::send_next(time_point now, actions& out) {
  if (!allows_checkpoints() || !can_be_answered()) return;
  const auto position = checkpoints_.next(now, urgency());
  if (!position) {
    arm_pace(now, out);
    return;
  }
  detail::require_invariant(
      position->is_number() || current_->what == action_kind::shard_ended,
      "the end of the shard is checkpointed before the daemon has reported it");
  checkpoints_.sent(*position, now);
  out.push_back(write_checkpoint{*position});
  if (!held_) return;
  const auto early = std::get<protocol::checkpoint_answer>(held_->message.body);
  held_.reset();
  out.push_back(resume_reading{});
  on_answer(early, now, out);
}

/// A callback that lasts may outlast the interval.
void session::arm_pace(time_point now, actions& out) {
  if (phase_ != phase::calling || urgency() != checkpoints::urgency::paced) return;
  const auto due = checkpoints_.next_paced(now);
  if (!due || due == pace_armed_for_) return;
  pace_armed_for_ = due;
  out.push_back(arm_timer{timer::pace, std::chrono::ceil<std::chrono::milliseconds>(*due - now)});
}

void session::on_checkpoint(waiter_id id, const std::optional<sequence_position>& position,
                            bool from_callback, time_point now, actions& out) {
  if (has_ended()) {
    out.push_back(complete{id, errc::daemon_gone});
    return;
  }
  if (from_callback && !allows_checkpoints() && !checkpoints_.is_lease_gone()) {
    out.push_back(complete{id, errc::not_allowed_here});
    return;
  }
  if (from_callback && !can_be_answered() && !checkpoints_.is_lease_gone()) {
    out.push_back(complete{id, errc::not_answered});
    return;
  }
  const bool at_shard_end =
      from_callback && phase_ == phase::calling && current_->what == action_kind::shard_ended;
  checkpoints_.checkpoint(id, position, from_callback, at_shard_end, out);
  after_request(now, out);
}

void session::on_async_checkpoint(const std::optional<waiter_id>& id,
                                  const std::optional<sequence_position>& position,
                                  bool from_callback, time_point now, actions& out) {
  if (has_ended()) {
    if (id) out.push_back(complete{*id, errc::daemon_gone});
    return;
  }
  checkpoints_.async_checkpoint(id, position, from_callback, out);
  after_request(now, out);
}

void session::after_request(time_point now, actions& out) {
  if (phase_ == phase::closing && awaits_completion()) {
    close(now, out);
  } else {
    send_next(now, out);
  }
}

bool session::on_deadline(waiter_id id, time_point now, actions& out) {
  const bool was_waiting = checkpoints_.abandon(id);
  send_next(now, out);
  return was_waiting;
}

void session::on_callback_lasts(time_point now, actions& out) {
  is_flushed_ = true;
  send_next(now, out);
}

void session::on_timer(timer which, time_point now, actions& out) {
  switch (which) {
    case timer::pace:
    case timer::retry:
      if (phase_ == phase::closing) {
        close(now, out);
      } else {
        send_next(now, out);
      }
      return;
    case timer::report:
      if (phase_ == phase::closing && awaits_completion()) report_incomplete(out);
      return;
    case timer::grace:
      if (phase_ == phase::leaving) {
        out.push_back(
            log_line{log_level::error, "a callback did not return within the grace time"});
        leave_now(exit_status::callback_stuck, out);
      } else if (phase_ == phase::failing) {
        leave_now(exit_status::callback_failed, out);
      }
      return;
  }
}

void session::on_bad_line(const std::string& text, actions& out) {
  if (phase_ == phase::left) return;
  out.push_back(log_line{log_level::error, text});
  abort(exit_status::protocol_error, out);
}

void session::on_failure(exit_status status, const std::string& why, actions& out) {
  if (phase_ == phase::left) return;
  out.push_back(log_line{log_level::error, why});
  abort(status, out);
}

void session::on_output_broken(const std::string& why, actions& out) {
  if (phase_ == phase::leaving || phase_ == phase::left) return;
  out.push_back(log_line{log_level::error, "cannot write to the daemon: " + why});
  abort(exit_status::daemon_gone, out);
}

void session::on_end_of_input(bool unfinished_line, time_point now, actions& out) {
  if (has_ended()) return;
  if (unfinished_line) {
    out.push_back(log_line{log_level::error, "the input ended in the middle of a line"});
    abort(exit_status::daemon_gone, out);
    return;
  }
  if (!is_open()) {
    leave_at_end(out);
    return;
  }
  if (input_is_file_ && phase_ != phase::failing) {
    input_ended_ = true;
    checkpoints_.not_answered(errc::daemon_gone, out);
    checkpoints_.fail_waiters(errc::daemon_gone, out);
    if (phase_ == phase::closing) close(now, out);
    return;
  }
  out.push_back(
      log_line{log_level::error, "the daemon closed the input in the middle of " + current_->name});
  abort(phase_ == phase::failing ? exit_status::callback_failed : exit_status::daemon_gone, out);
}

void session::fire_stop(actions& out) {
  if (!std::exchange(stop_fired_, true)) out.push_back(request_stop{});
}

void session::abort(exit_status status, actions& out) {
  if (phase_ == phase::leaving) return;
  if (phase_ != phase::calling) {
    leave_now(status, out);
    return;
  }
  // The callback is still running: tell it, and wait for it within bounds.
  checkpoints_.not_answered(errc::daemon_gone, out);
  checkpoints_.fail_waiters(errc::daemon_gone, out);
  fire_stop(out);
  out.push_back(arm_timer{timer::grace, options_.grace_time});
  leaving_with_ = status;
  phase_ = phase::leaving;
}

void session::leave_now(exit_status status, actions& out) {
  checkpoints_.fail_waiters(errc::daemon_gone, out);
  fire_stop(out);
  phase_ = phase::left;
  out.emplace_back(leave{status});
}

void session::report_unpersisted(actions& out) {
  if (!checkpoints_.has_unpersisted()) return;
  out.push_back(log_line{log_level::warning,
                         "records up to " + to_string(*checkpoints_.complete()) +
                             " are complete but not checkpointed: they will be delivered again",
                         checkpoints_.complete()});
}

void session::leave_at_end(actions& out) {
  checkpoints_.not_answered(errc::daemon_gone, out);
  report_unpersisted(out);
  leave_now(exit_status::ok, out);
}

void session::on_callback_returned(time_point now, actions& out) {
  if (phase_ == phase::leaving) {
    leave_now(leaving_with_, out);
    return;
  }
  checkpoints_.delivered_returned();
  if (phase_ != phase::calling) return;
  phase_ = phase::closing;
  const bool is_automatic = options_.mode == checkpoint_mode::automatic;
  if (is_automatic) checkpoints_.complete_delivered();
  if (is_automatic || current_->what == action_kind::shutdown_requested) {
    checkpoints_.make_complete_pending();
  }
  close(now, out);
}

void session::close(time_point now, actions& out) {
  switch (current_->what) {
    case action_kind::process_records:
      return close_process_records(now, out);
    case action_kind::shutdown_requested:
      return close_shutdown(now, out);
    case action_kind::shard_ended:
      return close_shard_end(now, out);
    case action_kind::initialize:
    case action_kind::lease_lost:
      return write_status_and_continue(now, out);
  }
}

void session::close_process_records(time_point now, actions& out) {
  // A checkpoint line may be unanswered before the status line: it is answered first. But there
  // is at most one, so a higher position waits for the answer to the lower.
  if (checkpoints_.has_unanswered() && checkpoints_.has_more_than_unanswered(now, urgency()))
    return;
  send_next(now, out);
  if (phase_ == phase::closing) write_status_and_continue(now, out);
}

void session::close_shutdown(time_point now, actions& out) {
  // The last chance: awaited, and retried for as long as the daemon has patience (P46). One try is
  // made in any case, even if the callback used that time up or a backoff would outlast it.
  if (checkpoints_.has_unanswered()) return;
  const bool is_first_try = !current_->tried_last_chance;
  const bool backoff_is_too_long = checkpoints_.not_before() > *current_->last_retry;
  if (is_first_try && backoff_is_too_long) {
    send_next(std::max(now, checkpoints_.not_before()), out);
  } else if (is_first_try || now <= *current_->last_retry) {
    send_next(now, out);
  }
  if (checkpoints_.has_unanswered()) current_->tried_last_chance = true;
  if (phase_ != phase::closing || checkpoints_.has_unanswered()) return;
  if (can_be_answered() && checkpoints_.has_pending() && now < checkpoints_.not_before() &&
      checkpoints_.not_before() <= *current_->last_retry) {
    return;  // the retry timer is running
  }
  if (checkpoints_.has_unpersisted()) {
    out.push_back(log_line{log_level::error,
                           "shutdown: records up to " + to_string(*checkpoints_.complete()) +
                               " are complete but not checkpointed: they will be delivered again",
                           checkpoints_.complete()});
  }
  write_status_and_continue(now, out);
}

void session::close_shard_end(time_point now, actions& out) {
  if (is_loss_reported_ || checkpoints_.is_shard_finished()) {
    write_status_and_continue(now, out);
    return;
  }
  if (checkpoints_.has_unanswered()) return;
  if (given_up_) {
    out.push_back(log_line{log_level::error,
                           "the end of the shard is not checkpointed, and the daemon has not "
                           "reported that the lease is lost: leaving; " +
                               given_up_->why});
    abort(exit_status::shard_end_failed, out);
    return;
  }
  if (!can_be_answered()) {
    out.push_back(log_line{log_level::error,
                           "the input continues without an answer to the end of the shard"});
    abort(exit_status::shard_end_failed, out);
    return;
  }
  if (checkpoints_.is_all_complete()) {
    current_->awaits_completion = false;
    checkpoints_.make_shard_end_pending();
  } else if (!std::exchange(current_->awaits_completion, true)) {
    report_incomplete(out);
  }
  send_next(now, out);  // or the retry timer is running
}

/// The processor of a manual checkpoint_mode has records that it never asked to checkpoint.
void session::report_incomplete(actions& out) {
  const auto complete = checkpoints_.complete_or_persisted();
  out.push_back(log_line{log_level::warning,
                         "the end of the shard waits: records up to " +
                             to_string(*checkpoints_.delivered()) +
                             " were delivered, but checkpoints were requested " +
                             (complete ? "only up to " + to_string(*complete) : "for none") +
                             "; call async_checkpoint when the rest is done"});
  out.push_back(arm_timer{timer::report, std::chrono::minutes(1)});
}

void session::write_status_and_continue(time_point now, actions& out) {
  detail::require_invariant(current_.has_value(), "a status is written while no action is open");
  out.push_back(write_status{current_->name});
  is_terminal_ =
      current_->what == action_kind::lease_lost || current_->what == action_kind::shard_ended;
  current_.reset();
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
  if (phase_ == phase::left) return;
  out.push_back(log_line{log_level::error, what});
  if (phase_ == phase::failing) return;
  if (phase_ == phase::leaving) {
    leave_now(leaving_with_, out);
    return;
  }
  // No status, ever. But what was complete before is persisted first, or it would be done again;
  // not at the end of a shard, which any checkpoint might finish (P49).
  const bool can_persist = allows_checkpoints() && current_->what != action_kind::shard_ended;
  phase_ = phase::failing;
  fire_stop(out);
  if (!can_persist) {
    report_unpersisted(out);
    leave_now(exit_status::callback_failed, out);
    return;
  }
  checkpoints_.make_complete_pending();
  out.push_back(arm_timer{timer::grace, options_.grace_time});
  finish_failing(checkpoints::outcome::persisted, now, out);
}

void session::on_lease_gone_in_callback(const std::string& what, time_point now, actions& out) {
  if (phase_ == phase::left) return;
  if (current_->what == action_kind::initialize) has_processor_ = false;
  give_up(what, now, out);
  on_callback_returned(now, out);
}

void session::on_lease_gone_elsewhere(const std::string& what, time_point now, actions& out) {
  if (phase_ == phase::left) return;
  give_up(what, now, out);
  if (phase_ == phase::closing) close(now, out);
}

void session::give_up(const std::string& what, time_point now, actions& out) {
  out.push_back(log_line{log_level::warning, what});
  if (!given_up_) given_up_ = given_up{what, now, now};
  checkpoints_.lose_lease(errc::lease_lost, out);
  fire_stop(out);
}

void session::finish_failing(checkpoints::outcome last, time_point now, actions& out) {
  if (last == checkpoints::outcome::persisted) {
    if (!checkpoints_.has_unanswered()) send_next(now, out);
    if (phase_ == phase::left || checkpoints_.has_unanswered()) return;
  }
  leave_now(exit_status::callback_failed, out);
}

}  // namespace kclxx::session
