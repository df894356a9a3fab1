// SPDX-License-Identifier: Apache-2.0
// What the child does, and what the daemon makes of it.
#include <algorithm>
#include <utility>

#include "base/overloaded.hpp"
#include "tool/replay/replay_plan.hpp"
#include "tool/text.hpp"

namespace kclxx::replay {

namespace dm = daemon_model;
using transcript::line_kind;

namespace {

bool is_message(const dm::child_message& line) {
  return !std::holds_alternative<dm::blank>(line) &&
         !std::holds_alternative<dm::ignored_line>(line);
}

}  // namespace

void replay_plan::on_sent(time now, effects& out) {
  if (phase_ != phase::playing || !std::exchange(is_sending_, false)) return;
  sent_at_ = now;
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
    if (!is_looked_ahead() && is_message(dm::parse_child_message(line))) {
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
    if (!std::holds_alternative<dm::child_status>(dm::parse_child_message(line))) continue;
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
    const dm::child_message message = dm::parse_child_message(line);
    if (const auto* asked = std::get_if<dm::child_checkpoint>(&message)) {
      ++verdict_.result().counts.checkpoints_asked;
      if (faults_.kills_before_checkpoint()) {
        was_killed_ = true;
        verdict_.on_deliberate_end();
        return kill(now, out);
      }
      if (how_.answers == answers_from::recorded && !current_.own) {
        recorded_failure_ = recorded_->take_failure(*asked);
      }
    }
    if (!current_.own) recorded_->compare(message, line, verdict_.result().differences);
  }
  dm::daemon_events happened;
  consumer_->on_line(line, happened);
  handle(happened, line, now, out);
}

void replay_plan::handle(const dm::daemon_events& all, std::string_view line, time now,
                         effects& out) {
  for (const dm::daemon_event& event : all) {
    std::visit(
        overloaded{
            [&](const dm::answered& a) { on_answered(a, line, out); },
            [&](const dm::skipped& a) {
              verdict_.breach("the daemon skips this line: " + a.why, a.line);
            },
            [&](const dm::returned&) { on_returned(now, line, out); },
            [&](const dm::failed& a) {
              if (verdict_.has_output_ended()) {
                verdict_.fail(a.why);
              } else {
                verdict_.breach(a.why, line);
              }
            },
            [&](const dm::shard_end_not_checkpointed&) {
              verdict_.breach(
                  "the end of the shard is not checkpointed: its child shards are never read",
                  line);
            },
            [&](const dm::close_input&) { close(now, out); },
            [&](const dm::lost_line& a) { on_lost_line(a.line); },
            [&](const dm::worker_ended& a) { verdict_.on_worker_ended(a.why, line); },
        },
        event);
  }
  // What a fault or a breach cut off is not the transcript's mistake.
  if (phase_ == phase::closing && ahead_ && !verdict_.is_end_explained() && !current_.is_last) {
    verdict_.damage(ahead_->line_number,
                    "a daemon sends no " + ahead_->name + " after " + current_.name);
  }
}

void replay_plan::on_answered(const dm::answered& answer, std::string_view line, effects& out) {
  ++verdict_.result().counts.checkpoints_answered;
  if (answer.error) ++verdict_.result().counts.checkpoints_failed;
  if (answer.error && !answer.attempted) {
    verdict_.breach("the daemon refuses this checkpoint in " + current_.name + ": " + *answer.error,
                    line);
  }
  if (how_.keeps_timeline) {
    verdict_.result().timeline.add_checkpoint(answer.error.has_value());
    verdict_.result().timeline.persist(lease_->checkpoint());
  }
  out.emplace_back(write_line{answer.line});
}

void replay_plan::on_returned(time now, std::string_view line, effects& out) {
  if (!verdict_.result().first_status) verdict_.result().first_status = now;
  verdict_.result().last_status = now;
  if (current_.content.kind == line_kind::process_records) {
    totals& counts = verdict_.result().counts;
    // A status before the line was written took no time.
    counts.callbacks.add(is_sending_ ? std::chrono::nanoseconds(0) : now - sent_at_);
    ++counts.batches;
    counts.records += current_.content.records;
    counts.data_bytes += current_.content.data_bytes;
  }
  if (how_.keeps_timeline) add_span(now);
  if (how_.answers == answers_from::recorded && !current_.own && recorded_->has_lost_lease()) {
    lease_->lose();
  }
  if (!input_broke_) return;
  verdict_.on_worker_ended(current_.name + ": the child answered, but had stopped to read", line);
  end_dialogue(now, out);
}

void replay_plan::add_span(time now) {
  span interval{current_.name};
  interval.repeats = current_.what == protocol::action_kind::process_records;
  interval.begin = started_at_ - *began_;
  interval.end = now - *began_;
  if (interval.repeats && !is_sending_) interval.callback = now - sent_at_;
  interval.behind = current_.content.millis_behind_latest;
  verdict_.result().timeline.add(std::move(interval));
}

void replay_plan::on_lost_line(const std::string& line) {
  const dm::child_message message = dm::parse_child_message(line);
  const bool is_checkpoint = std::holds_alternative<dm::child_checkpoint>(message);
  if (is_checkpoint) ++verdict_.result().counts.checkpoints_asked;
  if (is_message(message)) verdict_.on_lost_line(line);
}

void replay_plan::on_end_of_output(time now, effects& out) {
  if (phase_ == phase::closing) {
    phase_ = phase::waiting_for_exit;
    deadline_ = now + how_.timeout;
  } else if (phase_ == phase::playing && !verdict_.has_output_ended()) {
    verdict_.on_end_of_output();
    if (!consumer_) return;
    dm::daemon_events happened;
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
  recorded_->compare_final(*result.resume, current_.line_number, result.differences);
  if (how_.expected == expectation::answers && recorded_exit_) {
    verdict_.compare_exit(status, signal, *recorded_exit_);
  }
}

}  // namespace kclxx::replay
