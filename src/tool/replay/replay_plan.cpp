// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/overloaded.hpp"
#include "tool/text.hpp"

namespace kclxx::replay {

using daemon_model::child_checkpoint;
using daemon_model::child_message;
using daemon_model::child_status;
using daemon_model::daemon_events;
using daemon_model::parse_child_message;
using protocol::action_kind;
using transcript::line_kind;

namespace {

bool is_message(const child_message& line) {
  return !std::holds_alternative<daemon_model::blank>(line) &&
         !std::holds_alternative<daemon_model::ignored_line>(line);
}

}  // namespace

replay_plan::replay_plan(const options& how)
    : how_(how),
      faults_(how.inject),
      script_(how_, faults_),
      measured_(verdict_.result(), how.keeps_timeline) {}

replay_plan::replay_plan(const options& how, legacy from)
    : how_(how),
      faults_(std::move(from.faults)),
      script_(how_, faults_, std::move(from.persisted)),
      verdict_(std::move(from.so_far)),
      measured_(verdict_.result(), how.keeps_timeline, from.began) {
  faults_.begin_successor();
  ++verdict_.result().counts.successors;
}

bool replay_plan::has_successor() const noexcept {
  return was_killed_ && lease_ && lease_->checkpoint() != sequence_position("SHARD_END");
}

std::optional<legacy> replay_plan::take_legacy() {
  if (phase_ != phase::over || !has_successor()) return std::nullopt;
  return legacy{std::move(verdict_.result()), std::move(faults_), lease_->checkpoint(),
                *measured_.began()};
}

replay_plan::want replay_plan::wants() const noexcept {
  switch (phase_) {
    case phase::playing:
      break;
    case phase::closing:
      return want::child;
    case phase::waiting_for_exit:
      return want::child_exit;
    case phase::over:
      return want::nothing;
  }
  if (is_sending_) return held_ || !is_open() ? want::sent : want::child;
  if (!script_.is_looked_ahead()) return want::entry;
  return is_paused_ ? want::pause : want::child;
}

replay_plan::time replay_plan::deadline() const noexcept {
  return wants() == want::entry && (held_ || !is_open()) ? time::max() : deadline_;
}

void replay_plan::on_entry(const transcript::summarized_entry& next, time now, effects& out) {
  if (auto damage = script_.read(next)) {
    return on_damage(next.content.line_number, *std::move(damage), now, out);
  }
  proceed(now, out);
}

void replay_plan::on_end_of_transcript(time now, effects& out) {
  script_.end();
  proceed(now, out);
}

void replay_plan::on_damage(std::size_t line_number, std::string what, time now, effects& out) {
  verdict_.damage(line_number, std::move(what));
  on_end_of_transcript(now, out);
}

void replay_plan::on_time(time now, effects& out) {
  if (phase_ != phase::playing || !is_paused_ || now < deadline_) return;
  proceed(now, out);
}

// Does what can be done now: the line that waited, or the next action.
void replay_plan::proceed(time now, effects& out) {
  if (phase_ != phase::playing || is_sending_ || !script_.is_looked_ahead()) return;
  take_held_line(now, out);
  if (phase_ != phase::playing || is_open()) return;
  if (how_.recorded_pace && script_.ahead() && measured_.began()) {
    deadline_ = *measured_.began() + (*script_.ahead()->at - first_at_);
    is_paused_ = now < deadline_;
    if (is_paused_) return;
  }
  if (auto next = script_.next()) {
    start(std::move(*next), now, out);
  } else {
    end_dialogue(now, out);
  }
}

void replay_plan::begin_shard(const script::action& first) {
  const std::string id = first.content.shard_id.value_or("");
  verdict_.result().shard = id;
  first_at_ = first.at.value_or(std::chrono::microseconds(0));
  lease_.emplace(first.content.position.value_or(sequence_position("TRIM_HORIZON")));
  lease_->set_fault([this](const sequence_position&) {
    auto failure = faults_.checkpoint_failure();
    return failure ? failure : recorded_failure_;
  });
  consumer_.emplace(daemon_model::daemon_version::v3, *lease_);
  daemon_events nothing_open;
  if (verdict_.has_output_ended()) consumer_->on_end_of_output(nothing_open);
  faults_.begin_shard(id);
}

void replay_plan::start(script::action next, time now, effects& out) {
  if (!consumer_ && next.what != action_kind::initialize) {
    verdict_.damage(next.line_number, "the dialogue does not begin with initialize");
    return end_dialogue(now, out);
  }
  if (!consumer_) begin_shard(next);
  if (!consumer_->can_call(next.what)) {
    verdict_.damage(next.line_number, "a daemon sends no " + next.name + " here");
    return end_dialogue(now, out);
  }
  if (next.content.kind == line_kind::process_records) {
    faults_.begin_batch(next.content.records);
    if (faults_.is_lease_lost()) lease_->lose();
  }
  current_ = std::move(next);
  verdict_.begin_action(current_.line_number);
  is_sending_ = true;
  deadline_ = now + how_.timeout;
  measured_.begin(current_, faults_.records(), now);
  if (current_.own) {
    out.emplace_back(write_line{*current_.own});
  } else {
    out.emplace_back(write_entry{});
  }
  const bool has_records = current_.content.kind == line_kind::process_records;
  daemon_events happened;
  consumer_->call(current_.what, current_.name,
                  has_records ? current_.content.position : std::nullopt, happened);
  handle(happened, {}, now, out);
}

void replay_plan::end_dialogue(time now, effects& out) {
  if (consumer_) {
    daemon_events happened;
    consumer_->close(happened);
    handle(happened, {}, now, out);
  } else {
    close(now, out);
  }
}

void replay_plan::close(time now, effects& out) {
  phase_ = phase::closing;
  is_sending_ = false;
  held_.reset();
  deadline_ = now + how_.timeout;
  out.emplace_back(close_input{});
}

void replay_plan::meet_faults_after_line(time now, effects& out) {
  switch (faults_.take_what_follows_line()) {
    case fault_schedule::after_line::nothing:
      break;
    case fault_schedule::after_line::kill:
      was_killed_ = true;
      verdict_.on_deliberate_end();
      kill(now, out);
      break;
    case fault_schedule::after_line::end_of_input:
      verdict_.on_deliberate_end();
      end_dialogue(now, out);
      break;
  }
}

void replay_plan::on_sent(time now, effects& out) {
  if (phase_ != phase::playing || !std::exchange(is_sending_, false)) return;
  measured_.on_sent(now);
  meet_faults_after_line(now, out);
  proceed(now, out);
}

void replay_plan::on_input_broken(time now, effects& out) {
  if (phase_ != phase::playing) return;
  input_broke_ = true;
  on_sent(now, out);
}

void replay_plan::on_child_line(std::string_view line, time now, effects& out) {
  if (phase_ == phase::closing) {
    on_lost_line(std::string(line));
  } else if (phase_ == phase::playing) {
    // The daemon answers when its own line is written, and we when we know what was recorded.
    // What it skips does not hold it up.
    if (!script_.is_looked_ahead() && is_message(parse_child_message(line))) {
      held_ = held_line{std::string(line), now};
      return;
    }
    take_child_line(line, now, out);
    proceed(now, out);
  }
}

void replay_plan::on_early_output(std::string_view text) {
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    if (!std::holds_alternative<child_status>(parse_child_message(line))) continue;
    verdict_.breach("the daemon takes this status, which was there before " + current_.name +
                        " was sent, for the answer to it",
                    line);
  }
}

void replay_plan::take_held_line(time now, effects& out) {
  if (!held_) return;
  const held_line line = *std::exchange(held_, std::nullopt);
  take_child_line(line.text, std::min(line.at, now), out);
}

void replay_plan::take_child_line(std::string_view line, time now, effects& out) {
  recorded_failure_.reset();
  if (is_open()) {
    const child_message message = parse_child_message(line);
    if (const auto* asked = std::get_if<child_checkpoint>(&message)) {
      measured_.on_asked();
      if (faults_.kills_before_checkpoint()) {
        was_killed_ = true;
        verdict_.on_deliberate_end();
        return kill(now, out);
      }
      if (how_.answers == answers_from::recorded && !current_.own) {
        recorded_failure_ = script_.recorded().take_failure(*asked);
      }
    }
    if (!current_.own) script_.recorded().compare(message, line, verdict_.result().differences);
  }
  daemon_events happened;
  consumer_->on_line(line, happened);
  handle(happened, line, now, out);
}

void replay_plan::handle(const daemon_events& all, std::string_view line, time now, effects& out) {
  for (const daemon_model::daemon_event& event : all) {
    std::visit(
        overloaded{
            [&](const daemon_model::answered& a) { on_answered(a, line, out); },
            [&](const daemon_model::skipped& a) {
              verdict_.breach("the daemon skips this line: " + a.why, a.line);
            },
            [&](const daemon_model::returned&) { on_returned(now, line, out); },
            [&](const daemon_model::failed& a) {
              if (verdict_.has_output_ended()) {
                verdict_.fail(a.why);
              } else {
                verdict_.breach(a.why, line);
              }
            },
            [&](const daemon_model::shard_end_not_checkpointed&) {
              verdict_.breach(
                  "the end of the shard is not checkpointed: its child shards are never read",
                  line);
            },
            [&](const daemon_model::close_input&) { close(now, out); },
            [&](const daemon_model::lost_line& a) { on_lost_line(a.line); },
            [&](const daemon_model::worker_ended& a) { verdict_.on_worker_ended(a.why, line); },
        },
        event);
  }
  // What a fault or a breach cut off is not the transcript's mistake.
  const auto& ahead = script_.ahead();
  if (phase_ == phase::closing && ahead && !verdict_.is_end_explained() && !current_.is_last) {
    verdict_.damage(ahead->line_number,
                    "a daemon sends no " + ahead->name + " after " + current_.name);
  }
}

void replay_plan::on_answered(const daemon_model::answered& answer, std::string_view line,
                              effects& out) {
  measured_.on_answered(answer.error.has_value(), lease_->checkpoint());
  if (answer.error && !answer.attempted) {
    verdict_.breach("the daemon refuses this checkpoint in " + current_.name + ": " + *answer.error,
                    line);
  }
  out.emplace_back(write_line{answer.line});
}

void replay_plan::on_returned(time now, std::string_view line, effects& out) {
  measured_.on_returned(current_, now);
  if (how_.answers == answers_from::recorded && !current_.own &&
      script_.recorded().has_lost_lease()) {
    lease_->lose();
  }
  if (!input_broke_) return;
  verdict_.on_worker_ended(current_.name + ": the child answered, but had stopped to read", line);
  end_dialogue(now, out);
}

void replay_plan::on_lost_line(const std::string& line) {
  const child_message message = parse_child_message(line);
  const bool is_checkpoint = std::holds_alternative<child_checkpoint>(message);
  if (is_checkpoint) measured_.on_asked();
  if (is_message(message)) verdict_.on_lost_line(line);
}

void replay_plan::on_end_of_output(time now, effects& out) {
  if (phase_ == phase::closing) {
    phase_ = phase::waiting_for_exit;
    deadline_ = now + how_.timeout;
  } else if (phase_ == phase::playing && !verdict_.has_output_ended()) {
    verdict_.on_end_of_output();
    if (!consumer_) return;
    daemon_events happened;
    consumer_->on_end_of_output(happened);
    handle(happened, {}, now, out);
    proceed(now, out);
  }
}

void replay_plan::on_timeout(time now, effects& out) {
  const std::string limit = " within " + tool::to_text(how_.timeout);
  switch (phase_) {
    case phase::playing:
      verdict_.fail(is_open() ? "no status for " + current_.name + limit
                              : current_.name + " was answered, but not read" + limit);
      break;
    case phase::closing:
      verdict_.fail("the child did not close its output" + limit + " of the end of its input");
      break;
    case phase::waiting_for_exit:
      verdict_.fail("the child did not leave" + limit + " of the end of its output");
      break;
    case phase::over:
      return;
  }
  kill(now, out);
}

void replay_plan::kill(time now, effects& out) {
  verdict_.on_kill();
  phase_ = phase::waiting_for_exit;
  deadline_ = now + how_.timeout;
  out.emplace_back(kill_child{});
}

void replay_plan::on_exit(int status, int signal) {
  phase_ = phase::over;
  verdict_.on_exit(status, signal);
  summary& result = verdict_.result();
  if (has_successor()) return;
  for (std::string& note : faults_.unmet()) result.notes.push_back(std::move(note));
  if (!lease_) return verdict_.damage(1, "there is no dialogue in it: no line of the daemon");
  result.resume = lease_->checkpoint();
  script_.recorded().compare_final(*result.resume, current_.line_number, result.differences);
  if (how_.expected == expectation::answers && script_.recorded_exit()) {
    verdict_.compare_exit(status, signal, *script_.recorded_exit());
  }
}

}  // namespace kclxx::replay
