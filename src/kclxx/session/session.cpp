// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include <algorithm>

#include "base/invariant.hpp"
#include "base/printable.hpp"

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

namespace {

constexpr time_point no_retry = time_point::min();

}  // namespace

session::session(const run_options& options, std::uint32_t seed)
    : options_(options), checkpoints_(options, seed) {}

// What the daemon writes.

void session::on_message(protocol::message message, record_batch batch, time_point now,
                         outputs& out) {
  if (has_ended()) return;
  if (const auto* answer = std::get_if<protocol::checkpoint_answer>(&message.body)) {
    on_answer(*answer, now, out);
  } else {
    detail::require_invariant(!is_open(), "an action is handed over while another one is open");
    open(std::move(message), std::move(batch), now, out);
  }
}

void session::open(protocol::message message, record_batch batch, time_point now, outputs& out) {
  checkpoints_.not_answered(errc::not_answered, out);
  const std::optional<action_kind> kind = message.kind();
  if (!kind) return write_status_of_unknown(message.action, out);
  if (phase_ == phase::finished ||
      (*kind == action_kind::initialize) != (phase_ == phase::starting)) {
    return on_failure(exit_status::protocol_error,
                      "the daemon sent " + message.action +
                          (phase_ == phase::finished   ? " after the last action of the shard"
                           : phase_ == phase::starting ? " before initialize"
                                                       : " a second time"),
                      out);
  }
  call callback{*kind, std::move(batch), {}, {}};
  std::optional<sequence_position> largest;
  if (auto* initialize = std::get_if<protocol::initialize>(&message.body)) {
    checkpoints_.start(initialize->start_position);
    callback.shard_id = std::move(initialize->shard_id);
    callback.start_position = initialize->start_position;
  } else if (auto* records = std::get_if<protocol::process_records>(&message.body)) {
    largest = records->largest;
    if (largest) checkpoints_.deliver(*largest);
    if (largest && !given_up_) report_without_lease(*largest, now, out);
  } else if (*kind == action_kind::shard_ended) {
    checkpoints_.reach_end();
  } else if (*kind == action_kind::lease_lost) {
    checkpoints_.lose_lease(errc::lease_lost, out);
    fire_stop(out);
    if (!given_up_) out.push_back(end_calls{});
  }
  current_.emplace(open_action{*kind, std::move(message.action), rule_of(*kind, now)});
  call_or_close(std::move(callback), largest, now, out);
}

/// The daemon has not called leaseLost yet. A processor that processes records meanwhile works in
/// vain, and one that does not must not skip them silently.
void session::report_without_lease(const sequence_position& largest, time_point now, outputs& out) {
  if (checkpoints_.lease() != lease_state::lost) return;
  if (reported_without_lease_ && now - *reported_without_lease_ < std::chrono::minutes(1)) return;
  reported_without_lease_ = now;
  out.push_back(log_line{log_level::warning,
                         "records up to " + to_string(largest) +
                             " arrive, and this worker no longer holds the lease: none of them is "
                             "checkpointed, and each, batches and parallel do not process them"});
}

closing_rule session::rule_of(action_kind kind, time_point now) const {
  switch (kind) {
    case action_kind::process_records:
      return close_records();
    case action_kind::shutdown_requested:
      return close_shutdown(now + options_.shutdown_retry_limit);
    case action_kind::shard_ended:
      return close_shard_end(options_.retry.max_attempts);
    case action_kind::initialize:
    case action_kind::lease_lost:
      break;
  }
  return close_at_once();
}

void session::call_or_close(call callback, const std::optional<sequence_position>& largest,
                            time_point now, outputs& out) {
  if (!given_up_ || given_up_->is_called_for(callback.kind)) {
    phase_ = phase::calling;
    out.push_back(std::move(callback));
    if (has_input_ended_) limit_callback(out);
    return send_next(now, out);
  }
  phase_ = phase::closing;
  if (largest && !given_up_->report_unprocessed(*largest, checkpoints_.lease(), now, out)) {
    return abort(exit_status::callback_failed, out);
  }
  close(now, out);
}

void session::write_status_of_unknown(const std::string& name, outputs& out) {
  out.push_back(
      log_line{log_level::warning,
               "the daemon sent an action that this version does not know; answering it: " +
                   detail::printable(name, detail::longest_name)});
  out.push_back(write_status{name});
}

void session::on_end_of_input(bool unfinished_line, outputs& out) {
  if (has_ended()) return;
  if (!unfinished_line && !is_open()) {
    checkpoints_.not_answered(errc::daemon_gone, out);
    checkpoints_.report_unpersisted(log_level::warning, "", out);
    return leave_now(exit_status::ok, out);
  }
  out.push_back(log_line{log_level::error,
                         unfinished_line
                             ? "the input ended in the middle of a line"
                             : "the daemon closed the input in the middle of " + current_->name});
  const bool has_failed = !unfinished_line && phase_ == phase::failing;
  abort(has_failed ? exit_status::callback_failed : exit_status::daemon_gone, out);
}

void session::on_end_behind_line(outputs& out) {
  if (std::exchange(has_input_ended_, true)) return;
  if (phase_ == phase::calling) limit_callback(out);
}

void session::limit_callback(outputs& out) const {
  out.push_back(arm_timer{timer::ended, options_.grace_time});
}

// Checkpoints.

void session::on_answer(const protocol::checkpoint_answer& answer, time_point now, outputs& out) {
  detail::require_invariant(checkpoints_.has_unanswered(),
                            "an answer is handed over to a checkpoint that was not asked for");
  const sequence_position& sent = *checkpoints_.unanswered();
  if (answer.position ? *answer.position != sent : sent.is_number()) {
    return on_failure(
        exit_status::protocol_error,
        "the daemon answered a checkpoint " +
            (answer.position ? "at " + to_string(*answer.position) : "without a position") +
            ", which is not the one that was sent",
        out);
  }
  observed_answer_ = answer;
  if (is_shard_end_unanswered()) return on_shard_end_answer(answer.error, now, out);
  settle(apply_answer(answer.error, last_retry(), now, out), false, now, out);
}

void session::on_shard_end_answer(const std::optional<std::string>& error, time_point now,
                                  outputs& out) {
  if (error) std::get<close_shard_end>(current_->close).count_failure();
  const bool was_last_attempt = error && !shard_end()->may_try_again();
  const auto outcome =
      apply_answer(error, was_last_attempt ? std::optional(no_retry) : std::nullopt, now, out);
  const bool has_failed = outcome == checkpoints::outcome::refused ||
                          (was_last_attempt && outcome == checkpoints::outcome::retry_later);
  settle(outcome, has_failed, now, out);
}

checkpoints::outcome session::apply_answer(const std::optional<std::string>& error,
                                           const std::optional<time_point>& last_retry,
                                           time_point now, outputs& out) {
  const auto outcome = checkpoints_.answered(error, now, last_retry, out);
  if (outcome == checkpoints::outcome::lease_gone) fire_stop(out);
  return outcome;
}

/// The last moment for a retry of a checkpoint, except of the end of the shard. std::nullopt: there
/// is no limit.
std::optional<time_point> session::last_retry() const {
  if (phase_ == phase::failing) return no_retry;  // the process is about to leave
  const auto* shutdown = current_ ? std::get_if<close_shutdown>(&current_->close) : nullptr;
  return shutdown != nullptr ? std::optional(shutdown->last_retry()) : std::nullopt;
}

void session::on_no_answer(time_point now, outputs& out) {
  if (!checkpoints_.has_unanswered()) return;
  const bool was_end = is_shard_end_unanswered();
  if (was_end) std::get<close_shard_end>(current_->close).count_failure();
  checkpoints_.not_answered(errc::not_answered, out);
  checkpoints_.drop_pending(errc::not_answered, out);
  settle(checkpoints::outcome::refused, was_end, now, out);
}

void session::settle(checkpoints::outcome last, bool has_end_failed, time_point now, outputs& out) {
  if (phase_ == phase::failing) {
    if (last == checkpoints::outcome::persisted) return persist_complete_or_leave(now, out);
    return leave_now(exit_status::callback_failed, out);
  }
  if (!has_end_failed) return proceed(now, out);
  // Success is never reported: the shard's children would never be read (P50).
  shard_end()->report_failure(out);
  abort(exit_status::shard_end_failed, out);
}

/// The rule of an open shardEnded that closes; null in any further state.
const close_shard_end* session::shard_end() const noexcept {
  return phase_ == phase::closing ? std::get_if<close_shard_end>(&current_->close) : nullptr;
}

/// Precondition: a checkpoint is unanswered.
bool session::is_shard_end_unanswered() const noexcept {
  return shard_end() != nullptr && !checkpoints_.unanswered()->is_number();
}

bool session::awaits_completion() const noexcept {
  return shard_end() != nullptr && shard_end()->awaits_completion();
}

bool session::allows_checkpoints() const noexcept {
  // The daemon answers a checkpoint in initialize and leaseLost with InvalidStateException (P38).
  return is_open() && !std::holds_alternative<close_at_once>(current_->close);
}

/// After a stop only records that were complete before are persisted. A lost lease refuses requests
/// itself.
bool session::takes_requests() const noexcept { return !has_ended() && phase_ != phase::failing; }

checkpoints::send_scope session::send_scope() const {
  if (phase_ == phase::failing) return checkpoints::send_scope::all;
  const bool is_records = current_->kind == action_kind::process_records;
  if (phase_ == phase::closing) {
    return is_records ? checkpoints::send_scope::paced : checkpoints::send_scope::all;
  }
  // A request that nobody waits for goes out with the status.
  if (!current_->lasts) return checkpoints::send_scope::waiters;
  // Any checkpoint while shardEnded is open may finish the shard, also before the callback has
  // returned (P49).
  return current_->kind == action_kind::shard_ended ? checkpoints::send_scope::handlers
                                                    : checkpoints::send_scope::paced;
}

void session::send_next(time_point now, outputs& out) {
  if (!allows_checkpoints()) return;
  const auto scope = send_scope();
  if (checkpoints_.send(now, scope, out)) return;
  // A callback that lasts may outlast the interval.
  if (phase_ == phase::calling && scope == checkpoints::send_scope::paced) {
    checkpoints_.arm_pace(now, out);
  }
}

void session::on_checkpoint(waiter_id id, const std::optional<sequence_position>& position,
                            bool from_callback, time_point now, outputs& out) {
  if (!takes_requests()) {
    out.push_back(notify_waiter{id, errc::daemon_gone});
    return;
  }
  const bool has_lease = checkpoints_.lease() == lease_state::held;
  if (from_callback && !allows_checkpoints() && has_lease) {
    out.push_back(notify_waiter{id, errc::not_allowed_here});
    return;
  }
  const bool at_shard_end =
      from_callback && phase_ == phase::calling && current_->kind == action_kind::shard_ended;
  checkpoints_.checkpoint(id, position, from_callback, at_shard_end, out);
  awaits_completion() ? close(now, out) : send_next(now, out);
}

void session::on_async_checkpoint(const std::optional<waiter_id>& id,
                                  const std::optional<sequence_position>& position,
                                  bool from_callback, time_point now, outputs& out) {
  if (!takes_requests()) {
    if (id) out.push_back(notify_waiter{*id, errc::daemon_gone});
    return;
  }
  checkpoints_.async_checkpoint(id, position, from_callback, out);
  awaits_completion() ? close(now, out) : send_next(now, out);
}

bool session::on_deadline(waiter_id id, time_point now, outputs& out) {
  const bool was_waiting = checkpoints_.abandon(id);
  send_next(now, out);
  return was_waiting;
}

void session::on_callback_lasts(time_point now, outputs& out) {
  if (current_) current_->lasts = true;
  send_next(now, out);
}

void session::on_timer(timer timer, time_point now, outputs& out) {
  switch (timer) {
    case timer::pace:
    case timer::retry:
      return proceed(now, out);
    case timer::report:
      if (awaits_completion()) shard_end()->report_incomplete(checkpoints_, out);
      return;
    case timer::grace:
      if (phase_ == phase::leaving) {
        leave_stuck(out);
      } else if (phase_ == phase::failing) {
        leave_now(exit_status::callback_failed, out);
      }
      return;
    case timer::ended:
      if (phase_ == phase::calling) leave_stuck(out);
      return;
  }
}

// The end of a callback, and of its action.

void session::on_callback_returned(time_point now, outputs& out) {
  if (phase_ == phase::leaving) return leave_now(leaving_with_, out);
  checkpoints_.delivered_returned();
  if (phase_ != phase::calling) return;
  phase_ = phase::closing;
  // The callback may have taken longer than shutdown_retry_limit: the limit begins anew.
  current_->close = rule_of(current_->kind, now);
  const bool is_automatic = mode_ == checkpoint_mode::automatic;
  if (is_automatic) checkpoints_.complete_delivered();
  if (is_automatic || current_->kind == action_kind::shutdown_requested) {
    checkpoints_.make_complete_pending();
  }
  close(now, out);
}

void session::proceed(time_point now, outputs& out) {
  phase_ == phase::closing ? close(now, out) : send_next(now, out);
}

void session::close(time_point now, outputs& out) {
  detail::require_invariant(phase_ == phase::closing,
                            "a status is written while no action is open");
  const auto step =
      std::visit([&](auto& rule) { return rule.next(checkpoints_, now, out); }, current_->close);
  if (step == closing_step::wait) return;
  if (step == closing_step::leave) {
    given_up_->report_unfinished_end(out);
    return abort(exit_status::shard_end_failed, out);
  }
  const bool is_last =
      current_->kind == action_kind::lease_lost || current_->kind == action_kind::shard_ended;
  out.push_back(write_status{std::move(current_->name), current_->kind});
  current_.reset();
  phase_ = is_last ? phase::finished : phase::idle;
}

// User code that threw.

bool session::is_fatal(const failure& thrown) const noexcept {
  const bool is_of_lease_lost =
      thrown.is_in_callback && current_ && current_->kind == action_kind::lease_lost;
  const bool has_lease = checkpoints_.lease() == lease_state::held;
  return !thrown.is_lease_gone && (has_lease || is_of_lease_lost);
}

void session::on_threw(const failure& thrown, time_point now, outputs& out) {
  if (phase_ == phase::left) return;
  if (!is_fatal(thrown)) {
    give_up(thrown, now, out);
    if (thrown.is_in_callback) {
      on_callback_returned(now, out);
    } else if (phase_ == phase::closing) {
      close(now, out);
    }
    return;
  }
  out.push_back(log_line{log_level::error, thrown.text});
  if (phase_ == phase::leaving) {
    if (thrown.is_in_callback) leave_now(leaving_with_, out);
  } else if (phase_ != phase::failing) {
    fail(now, out);
  }
}

void session::give_up(const failure& thrown, time_point now, outputs& out) {
  out.push_back(log_line{log_level::warning, thrown.text});
  checkpoints_.give_up(out);
  fire_stop(out);
  if (!given_up_) {
    given_up_.emplace(thrown.text, now);
    out.push_back(end_calls{});
  }
  const bool has_no_processor =
      thrown.is_in_callback && current_ && current_->kind == action_kind::initialize;
  if (has_no_processor) given_up_->lose_processor();
}

/// The action never gets a status. But records that were complete before are persisted first, so
/// that they are not processed again; not at the end of a shard, which any checkpoint may finish
/// (P49).
void session::fail(time_point now, outputs& out) {
  const bool can_persist = allows_checkpoints() && current_->kind != action_kind::shard_ended;
  phase_ = phase::failing;
  fire_stop(out);
  if (!can_persist) {
    checkpoints_.report_unpersisted(log_level::warning, "", out);
    return leave_now(exit_status::callback_failed, out);
  }
  checkpoints_.make_complete_pending();
  out.push_back(arm_timer{timer::grace, options_.grace_time});
  persist_complete_or_leave(now, out);
}

void session::persist_complete_or_leave(time_point now, outputs& out) {
  if (!checkpoints_.has_unanswered()) send_next(now, out);
  if (!checkpoints_.has_unanswered()) leave_now(exit_status::callback_failed, out);
}

// The end of the session.

void session::on_failure(exit_status status, const std::string& reason, outputs& out) {
  if (has_ended()) return;
  out.push_back(log_line{log_level::error, reason});
  abort(status, out);
}

void session::abort(exit_status status, outputs& out) {
  if (phase_ != phase::calling) return leave_now(status, out);
  // The callback is still running: tell it, and wait for it within bounds.
  checkpoints_.not_answered(errc::daemon_gone, out);
  checkpoints_.fail_waiters(errc::daemon_gone, out);
  fire_stop(out);
  out.push_back(arm_timer{timer::grace, options_.grace_time});
  leaving_with_ = status;
  phase_ = phase::leaving;
}

void session::leave_stuck(outputs& out) {
  out.push_back(log_line{log_level::error, "a callback did not return within the grace time"});
  leave_now(exit_status::callback_stuck, out);
}

void session::leave_now(exit_status status, outputs& out) {
  checkpoints_.fail_waiters(errc::daemon_gone, out);
  fire_stop(out);
  phase_ = phase::left;
  out.emplace_back(leave{status});
}

void session::fire_stop(outputs& out) {
  if (!std::exchange(has_stopped_, true)) out.push_back(request_stop{});
}

}  // namespace kclxx::session
