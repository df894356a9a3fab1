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

bool is_message(const dm::child_line& line) {
  return !std::holds_alternative<dm::blank>(line) &&
         !std::holds_alternative<dm::ignored_line>(line);
}

std::string ending(int status, int signal) {
  return signal != 0 ? "signal " + std::to_string(signal) : "exit status " + std::to_string(status);
}

}  // namespace

void replay_plan::on_sent(time now, effects& out) {
  if (phase_ != phase::playing || !std::exchange(is_sending_, false)) return;
  sent_at_ = now;
  meet_faults_after_line(now, out);
  go_on(now, out);
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
    if (!is_looked_ahead() && is_message(dm::parse_child_line(line))) {
      held_ = held_line{std::string(line), now};
      return;
    }
    take_child_line(line, now, out);
    go_on(now, out);
  }
}

void replay_plan::on_early_output(std::string_view text) {
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    if (!std::holds_alternative<dm::child_status>(dm::parse_child_line(line))) continue;
    summary_.breaches.add(current_.line_number,
                          "the daemon takes this status, which was there before " + current_.name +
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
    const dm::child_line message = dm::parse_child_line(line);
    if (const auto* asked = std::get_if<dm::child_checkpoint>(&message)) {
      ++summary_.counts.checkpoints_asked;
      if (how_.answers == answers_from::recorded && !current_.own) {
        recorded_failure_ = recorded_->take_failure(*asked);
      }
    }
    if (!current_.own) recorded_->compare(message, line, summary_.differences);
  }
  dm::happenings happened;
  consumer_->on_line(line, happened);
  handle(happened, line, now, out);
}

void replay_plan::handle(const dm::happenings& all, std::string_view line, time now, effects& out) {
  const auto breach = [&](std::string what, std::string_view by) {
    summary_.breaches.add(current_.line_number, std::move(what), by);
  };
  for (const dm::happening& one : all) {
    std::visit(
        overloaded{
            [&](const dm::answered& a) { on_answered(a, line, out); },
            [&](const dm::skipped& a) { breach("the daemon skips this line: " + a.why, a.line); },
            [&](const dm::returned&) { on_returned(now, line, out); },
            [&](const dm::failed& a) {
              if (output_ended_) {
                fail(a.why);
              } else {
                breach(a.why, line);
              }
            },
            [&](const dm::shard_end_not_checkpointed&) {
              breach("the end of the shard is not checkpointed: its children are never read", line);
            },
            [&](const dm::close_input&) { close(now, out); },
            [&](const dm::lost_line& a) { on_lost_line(a.line); },
            [&](const dm::worker_ended& a) { on_worker_ended(a.why, line); },
        },
        one);
  }
  // What a fault or a breach cut off is not the transcript's mistake.
  if (phase_ == phase::closing && ahead_ && !is_deliberate_ && !worker_ended_ &&
      !current_.is_last) {
    damage(ahead_->line_number, "a daemon sends no " + ahead_->name + " after " + current_.name);
  }
}

void replay_plan::on_answered(const dm::answered& one, std::string_view line, effects& out) {
  ++summary_.counts.checkpoints_answered;
  if (one.error) ++summary_.counts.checkpoints_failed;
  if (one.error && !one.attempted) {
    summary_.breaches.add(
        current_.line_number,
        "the daemon refuses this checkpoint in " + current_.name + ": " + *one.error, line);
  }
  if (how_.keeps_timeline) {
    summary_.timeline.add_checkpoint(one.error.has_value());
    summary_.timeline.persist(lease_->checkpoint());
  }
  out.emplace_back(write_line{one.line});
}

void replay_plan::on_returned(time now, std::string_view line, effects& out) {
  if (!summary_.first_status) summary_.first_status = now;
  summary_.last_status = now;
  if (current_.content.kind == line_kind::process_records) {
    totals& counts = summary_.counts;
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
  on_worker_ended(current_.name + ": the child answered, but had stopped to read", line);
  end_dialogue(now, out);
}

void replay_plan::add_span(time now) {
  span one{current_.name};
  one.repeats = current_.what == dm::call_kind::process_records;
  one.begin = started_at_ - *began_;
  one.end = now - *began_;
  if (one.repeats && !is_sending_) one.callback = now - sent_at_;
  one.behind = current_.content.millis_behind_latest;
  summary_.timeline.add(std::move(one));
}

void replay_plan::on_worker_ended(const std::string& why, std::string_view line) {
  worker_ended_ = true;
  if (output_ended_) {
    fail(why);
  } else if (!was_killed_) {
    summary_.breaches.add(current_.line_number, why + "; the daemon ends the whole worker", line);
  }
}

void replay_plan::on_lost_line(const std::string& line) {
  const dm::child_line message = dm::parse_child_line(line);
  const bool is_checkpoint = std::holds_alternative<dm::child_checkpoint>(message);
  if (is_checkpoint) ++summary_.counts.checkpoints_asked;
  if (is_deliberate_ || worker_ended_ || !is_message(message)) return;
  summary_.breaches.add(current_.line_number,
                        "nobody reads this line: it came after the last status", line);
}

void replay_plan::on_end_of_output(time now, effects& out) {
  if (phase_ == phase::closing) {
    phase_ = phase::waiting_for_exit;
    deadline_ = now + how_.timeout;
  } else if (phase_ == phase::playing && !std::exchange(output_ended_, true) && consumer_) {
    dm::happenings happened;
    consumer_->on_end_of_output(happened);
    handle(happened, {}, now, out);
    go_on(now, out);
  }
}

void replay_plan::on_timeout(time now, effects& out) {
  const std::string limit = " within " + tool::to_text(how_.timeout);
  switch (phase_) {
    case phase::playing:
      fail(is_open() ? "no status for " + current_.name + limit
                     : current_.name + " was answered, but not read" + limit);
      break;
    case phase::closing:
      fail("the child did not close its output" + limit + " of the end of its input");
      break;
    case phase::waiting_for_exit:
      fail("the child did not leave" + limit + " of the end of its output");
      break;
    case phase::over:
      return;
  }
  kill(now, out);
}

void replay_plan::kill(time now, effects& out) {
  was_killed_ = true;
  phase_ = phase::waiting_for_exit;
  deadline_ = now + how_.timeout;
  out.emplace_back(kill_child{});
}

void replay_plan::fail(std::string why) {
  if (!summary_.failure) summary_.failure = diagnostic{current_.line_number, std::move(why), {}};
}

void replay_plan::on_exit(int status, int signal) {
  phase_ = phase::over;
  const bool is_fine = status == 0 && signal == 0;
  if (output_ended_ && summary_.failure && !was_killed_) {
    summary_.failure->what += ", " + ending(status, signal);
  } else if (!is_fine && !is_deliberate_ && !worker_ended_ && !was_killed_) {
    fail("the child left with " + ending(status, signal));
  }
  for (std::string& note : faults_.unmet()) summary_.notes.push_back(std::move(note));
  if (!lease_) return damage(1, "there is no dialogue in it: no line of the daemon");
  summary_.resume = lease_->checkpoint();
  recorded_->compare_final(*summary_.resume, current_.line_number, summary_.differences);
  if (how_.expected != expectation::answers || !recorded_exit_ || is_deliberate_) return;
  const bool was_signal = recorded_exit_->kind == transcript::entry_kind::killed;
  const std::string recorded =
      ending(was_signal ? 0 : recorded_exit_->number, was_signal ? recorded_exit_->number : 0);
  if (recorded != ending(status, signal)) {
    summary_.differences.add(
        recorded_exit_->line_number,
        "recorded was " + recorded + ", but the child left with " + ending(status, signal));
  }
}

}  // namespace kclxx::replay
