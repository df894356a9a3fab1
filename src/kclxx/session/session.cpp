// SPDX-License-Identifier: Apache-2.0
// Events from the daemon and from the surroundings. How an action is closed stands in closing.cpp.
#include "session/session.hpp"

#include <utility>

namespace kclxx::session {

namespace {

std::optional<callback> callback_for(const protocol::message& message) {
  struct chooser {
    std::optional<callback> operator()(const protocol::initialize&) { return callback::initialize; }
    std::optional<callback> operator()(const protocol::process_records&) {
      return callback::process_records;
    }
    std::optional<callback> operator()(const protocol::lease_lost&) { return callback::lease_lost; }
    std::optional<callback> operator()(const protocol::shard_ended&) {
      return callback::shard_ended;
    }
    std::optional<callback> operator()(const protocol::shutdown_requested&) {
      return callback::shutdown_requested;
    }
    std::optional<callback> operator()(const protocol::checkpoint_answer&) { return std::nullopt; }
    std::optional<callback> operator()(const protocol::unknown_action&) { return std::nullopt; }
  };
  return std::visit(chooser{}, message.body);
}

}  // namespace

session::session(const run_options& options, bool input_is_file, std::uint32_t seed)
    : options_(options), input_is_file_(input_is_file), checkpoints_(options.retry, seed) {}

bool session::allows_checkpoints() const noexcept {
  // The daemon answers a checkpoint in initialize and leaseLost with InvalidStateException (P38).
  return is_open() && current_ &&
         (current_->what == callback::process_records || current_->what == callback::shard_ended ||
          current_->what == callback::shutdown_requested);
}

void session::on_message(protocol::message message, record_batch batch, time_point now,
                         actions& out) {
  if (has_ended()) return;
  const auto* answer = std::get_if<protocol::checkpoint_answer>(&message.body);
  if (answer != nullptr && checkpoints_.is_in_flight()) {
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
  const bool waited = checkpoints_.is_in_flight();
  if (is_lease_lost) {
    checkpoints_.lose_lease(errc::lease_lost, {}, out);
  } else {
    checkpoints_.not_answered(errc::not_answered, out);
  }
  if (!waited) return;
  if (phase_ == phase::failing) {
    finish_failing(checkpoints::outcome::refused, now, out);
  } else if (phase_ == phase::closing) {
    close(now, out);
  }
}

void session::on_answer(const protocol::checkpoint_answer& answer, time_point now, actions& out) {
  const bool for_shard_end = phase_ == phase::closing && current_->what == callback::shard_ended;
  if (for_shard_end && answer.error) ++shard_end_attempts_;
  const bool end_is_given_up = for_shard_end && shard_end_attempts_ >= options_.retry.max_attempts;
  // Nothing is tried again in a process that is about to leave.
  const bool is_last = end_is_given_up || phase_ == phase::failing;
  const auto outcome = checkpoints_.answered(
      answer.error, now, is_last ? std::optional(time_point::min()) : last_retry_, out);
  if (outcome == checkpoints::outcome::lease_gone) fire_stop(out);
  if (phase_ == phase::failing) {
    finish_failing(outcome, now, out);
    return;
  }
  if ((for_shard_end && outcome == checkpoints::outcome::refused) ||
      (end_is_given_up && outcome == checkpoints::outcome::retry_later)) {
    // Success is never reported: the shard's children would never be read (P50).
    out.push_back(log_line{log_level::error,
                           "the end of the shard could not be checkpointed after " +
                               std::to_string(shard_end_attempts_) + " attempt(s): leaving"});
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
  const std::optional<callback> what = callback_for(message);
  if (std::holds_alternative<protocol::checkpoint_answer>(message.body)) {
    drop_unasked_answer(out);
    return;
  }
  if (!what) {
    answer_unknown(message.action, out);
    return;
  }
  if (is_terminal_ || (*what == callback::initialize) != (phase_ == phase::starting)) {
    on_bad_line("the daemon sent " + message.action +
                    (is_terminal_                ? " after the last action of the shard"
                     : phase_ == phase::starting ? " before initialize"
                                                 : " a second time"),
                out);
    return;
  }
  call next{*what, std::move(batch), {}, {}};
  if (auto* initialize = std::get_if<protocol::initialize>(&message.body)) {
    checkpoints_.start(initialize->start_position);
    next.shard_id = std::move(initialize->shard_id);
    next.start_position = initialize->start_position;
  } else if (auto* records = std::get_if<protocol::process_records>(&message.body)) {
    if (records->largest) checkpoints_.deliver(*records->largest);
  } else if (*what == callback::lease_lost) {
    checkpoints_.lose_lease(errc::lease_lost, {}, out);
    fire_stop(out);
  } else if (*what == callback::shutdown_requested) {
    last_retry_ = now + options_.shutdown_retry_limit;
  }
  phase_ = phase::calling;
  current_ = open_action{*what, std::move(message.action)};
  out.push_back(std::move(next));
  send_next(now, out);
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

void session::send_next(time_point now, actions& out) {
  if (!allows_checkpoints() || !can_be_answered()) return;
  // What merely is pending could finish the shard before the callback has (P49).
  const bool for_waiters_only = current_->what == callback::shard_ended && phase_ == phase::calling;
  const auto position = checkpoints_.next(now, for_waiters_only);
  if (!position) return;
  checkpoints_.sent(*position);
  out.push_back(write_checkpoint{*position});
  if (!held_) return;
  const auto early = std::get<protocol::checkpoint_answer>(held_->message.body);
  held_.reset();
  out.push_back(resume_reading{});
  on_answer(early, now, out);
}

void session::on_checkpoint(waiter_id id, const std::optional<sequence_position>& position,
                            bool from_callback, time_point now, actions& out) {
  if (has_ended()) {
    out.push_back(complete{id, errc::daemon_gone, {}});
    return;
  }
  const bool not_here = current_ && phase_ == phase::calling && !allows_checkpoints();
  if (from_callback && (not_here || !current_) && !checkpoints_.is_lease_gone()) {
    out.push_back(complete{id, errc::not_allowed_here, {}});
    return;
  }
  if (from_callback && !can_be_answered() && !checkpoints_.is_lease_gone()) {
    out.push_back(complete{id, errc::not_answered, {}});
    return;
  }
  const bool at_shard_end = phase_ == phase::calling && current_->what == callback::shard_ended;
  checkpoints_.wait(id, position, at_shard_end, out);
  send_next(now, out);
}

bool session::on_deadline(waiter_id id, time_point now, actions& out) {
  const bool was_waiting = checkpoints_.abandon(id);
  send_next(now, out);
  return was_waiting;
}

std::error_code session::on_request(const std::optional<sequence_position>& position,
                                    time_point now, actions& out) {
  const std::error_code ec = on_request_for_later(position);
  if (!ec) send_next(now, out);
  return ec;
}

void session::on_timer(timer which, time_point now, actions& out) {
  if (which == timer::retry) {
    if (phase_ == phase::closing) {
      close(now, out);
    } else {
      send_next(now, out);
    }
  } else if (phase_ == phase::leaving) {
    out.push_back(log_line{log_level::error, "a callback did not return within the grace time"});
    leave_now(exit_status::callback_stuck, out);
  } else if (phase_ == phase::failing) {
    leave_now(exit_status::callback_failed, out);
  }
}

void session::on_bad_line(const std::string& text, actions& out) {
  if (phase_ == phase::left) return;
  out.push_back(log_line{log_level::error, text});
  abort(exit_status::protocol_error, out);
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
    checkpoints_.fail_waiters(errc::daemon_gone, {}, out);
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
  if (phase_ == phase::leaving || phase_ == phase::left) return;
  if (phase_ != phase::calling) {
    leave_now(status, out);
    return;
  }
  // The callback is still running: tell it, and wait for it within bounds.
  checkpoints_.not_answered(errc::daemon_gone, out);
  checkpoints_.fail_waiters(errc::daemon_gone, {}, out);
  fire_stop(out);
  out.push_back(arm_timer{timer::grace, options_.grace_time});
  leaving_with_ = status;
  phase_ = phase::leaving;
}

void session::leave_now(exit_status status, actions& out) {
  checkpoints_.fail_waiters(errc::daemon_gone, {}, out);
  fire_stop(out);
  phase_ = phase::left;
  out.push_back(leave{status});
}

void session::leave_at_end(actions& out) {
  checkpoints_.not_answered(errc::daemon_gone, out);
  if (checkpoints_.is_behind()) {
    out.push_back(log_line{log_level::warning,
                           "records up to " + to_string(*checkpoints_.complete()) +
                               " are complete but not checkpointed: they will be delivered again"});
  }
  leave_now(exit_status::ok, out);
}

}  // namespace kclxx::session
