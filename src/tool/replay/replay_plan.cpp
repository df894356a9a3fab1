// SPDX-License-Identifier: Apache-2.0
// The transcript's side: which line goes out next, and the faults.
#include "tool/replay/replay_plan.hpp"

#include <utility>

#include "daemon_model/lines.hpp"
#include "tool/replay/rest_of_batch.hpp"

namespace kclxx::replay {

namespace dm = daemon_model;
using protocol::action_kind;
using transcript::line_kind;

namespace {

constexpr const char* unknown_action = "kclxxUnknownAction";

// An unknown action is called as processRecords is: with a checkpointer, and as often as one likes.
action_kind kind_of(line_kind what) {
  switch (what) {
    case line_kind::initialize:
      return action_kind::initialize;
    case line_kind::lease_lost:
      return action_kind::lease_lost;
    case line_kind::shard_ended:
      return action_kind::shard_ended;
    case line_kind::shutdown_requested:
      return action_kind::shutdown_requested;
    case line_kind::process_records:
    case line_kind::checkpoint_answer:
    case line_kind::unknown_action:
      return action_kind::process_records;
  }
  return action_kind::process_records;
}

}  // namespace

replay_plan::replay_plan(const options& how) : how_(how), faults_(how.inject) {}

replay_plan::replay_plan(const options& how, legacy from)
    : how_(how),
      faults_(std::move(from.faults)),
      verdict_(std::move(from.so_far)),
      resumes_after_(std::move(from.persisted)),
      is_before_rest_(true),
      began_(from.began) {
  faults_.begin_successor();
  ++verdict_.result().counts.successors;
}

bool replay_plan::has_successor() const noexcept {
  return was_killed_ && lease_ && lease_->checkpoint() != sequence_position("SHARD_END");
}

std::optional<legacy> replay_plan::take_legacy() {
  if (phase_ != phase::over || !has_successor()) return std::nullopt;
  return legacy{std::move(verdict_.result()), std::move(faults_), lease_->checkpoint(), *began_};
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
  if (!is_looked_ahead()) return want::entry;
  return is_paused_ ? want::pause : want::child;
}

replay_plan::time replay_plan::deadline() const noexcept {
  return wants() == want::entry && (held_ || !is_open()) ? time::max() : deadline_;
}

void replay_plan::on_entry(const transcript::summarized_entry& next, time now, effects& out) {
  using transcript::entry_kind;
  const transcript::entry& entry = next.content;
  switch (entry.kind) {
    case entry_kind::daemon_line:
      take_daemon_line(next, now, out);
      break;
    case entry_kind::child_line:
      if (recorded_) recorded_->on_child_line(entry.line, entry.line_number);
      break;
    case entry_kind::exit:
    case entry_kind::killed:
      recorded_exit_ = entry;
      recorded_exit_->line = {};
      break;
    case entry_kind::end_of_input:  // comes after the last status
    case entry_kind::end_of_output:
      break;
  }
}

void replay_plan::take_daemon_line(const transcript::summarized_entry& from, time now,
                                   effects& out) {
  const transcript::entry& entry = from.content;
  if (const auto* error = std::get_if<protocol::decode_error>(&from.summary)) {
    const std::string field = error->field.empty() ? "" : error->field + " ";
    return on_damage(entry.line_number, "the daemon's line: " + field + error->what, now, out);
  }
  const auto& content = std::get<transcript::line_summary>(from.summary);
  if (content.kind == line_kind::checkpoint_answer) {
    if (recorded_) recorded_->on_answer(content);
    return;
  }
  action next{kind_of(content.kind), content.action, entry.line_number, entry.at};
  next.content = content;
  next.size = entry.line.size() + 1;
  if (is_before_rest_ && !leave_out_persisted(entry.line, next)) return;
  if (how_.recorded_pace && !entry.at) {
    return on_damage(entry.line_number, "the line has no time, so there is no recorded pace", now,
                     out);
  }
  ahead_ = std::move(next);
  proceed(now, out);
}

// As the daemon does for a successor: initialize has the position, and a batch begins after it.
bool replay_plan::leave_out_persisted(std::string_view line, action& next) {
  if (next.content.kind == line_kind::initialize && !consumer_) {
    next.content.position = resumes_after_;
    next.own = dm::initialize_line(next.content.shard_id.value_or(""), resumes_after_);
    next.size = next.own->size() + 1;
    return true;
  }
  const bool is_batch = next.content.kind == line_kind::process_records;
  const bool is_persisted = !next.content.position || *next.content.position <= *resumes_after_;
  if ((is_batch && is_persisted) || next.content.kind == line_kind::unknown_action) {
    if (is_batch) faults_.skip(next.content.records, true);
    if (recorded_) recorded_->begin(next.what, next.content.position);
    return false;
  }
  is_before_rest_ = false;
  if (!is_batch) return true;
  if (auto rest = rest_of_batch(line, *resumes_after_)) {
    faults_.skip(next.content.records - rest->records, false);
    next.content.records = rest->records;
    next.content.data_bytes = rest->data_bytes;
    next.own = std::move(rest->line);
    next.size = next.own->size() + 1;
  }
  return true;
}

void replay_plan::on_end_of_transcript(time now, effects& out) {
  transcript_ended_ = true;
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
  if (phase_ != phase::playing || is_sending_ || !is_looked_ahead()) return;
  take_held_line(now, out);
  if (phase_ != phase::playing || is_open()) return;
  if (how_.recorded_pace && ahead_ && began_) {
    deadline_ = *began_ + (*ahead_->at - first_at_);
    is_paused_ = now < deadline_;
    if (is_paused_) return;
  }
  if (auto next = next_action()) {
    start(std::move(*next), now, out);
  } else {
    end_dialogue(now, out);
  }
}

// That of the transcript, or what the faults put before it.
std::optional<replay_plan::action> replay_plan::next_action() {
  if (current_.is_last) return std::nullopt;
  if (faults_.is_lease_lost()) return injected(action_kind::lease_lost, "leaseLost", true);
  if (ahead_ && ahead_->content.kind == line_kind::process_records) {
    if (faults_.shutdown_replaces_it(ahead_->content.records)) {
      return injected(action_kind::shutdown_requested, "shutdownRequested", true);
    }
    if (faults_.unknown_action_comes_first()) {
      return injected(action_kind::process_records, unknown_action, false);
    }
  }
  return std::exchange(ahead_, std::nullopt);
}

replay_plan::action replay_plan::injected(action_kind what, std::string name, bool is_last) const {
  action made{what, name, current_.line_number};
  made.own = R"({"action":")" + name + R"("})";
  made.size = made.own->size() + 1;
  made.is_last = is_last;
  return made;
}

void replay_plan::begin_shard(const action& first, time now) {
  const std::string id = first.content.shard_id.value_or("");
  verdict_.result().shard = id;
  if (!began_) began_ = now;
  first_at_ = first.at.value_or(std::chrono::microseconds(0));
  lease_.emplace(first.content.position.value_or(sequence_position("TRIM_HORIZON")));
  lease_->set_fault([this](const sequence_position&) {
    auto failure = faults_.checkpoint_failure();
    return failure ? failure : recorded_failure_;
  });
  consumer_.emplace(dm::kcl_version::v3, *lease_);
  recorded_.emplace(how_.expected, first.content.position);
  faults_.begin_shard(id);
}

void replay_plan::start(action next, time now, effects& out) {
  if (!consumer_ && next.what != action_kind::initialize) {
    verdict_.damage(next.line_number, "the dialogue does not begin with initialize");
    return end_dialogue(now, out);
  }
  if (!consumer_) begin_shard(next, now);
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
  started_at_ = now;
  deadline_ = now + how_.timeout;
  verdict_.result().counts.line_bytes += current_.size;
  if (current_.own) {
    out.emplace_back(write_line{*current_.own});
  } else {
    recorded_->begin(current_.what, current_.content.position);
    out.emplace_back(write_entry{});
  }
  if (how_.keeps_timeline && current_.content.position &&
      current_.what == action_kind::process_records) {
    verdict_.result().timeline.deliver(*current_.content.position, faults_.records());
  }
  const bool has_records = current_.content.kind == line_kind::process_records;
  dm::daemon_events happened;
  consumer_->call(current_.what, current_.name,
                  has_records ? current_.content.position : std::nullopt, happened);
  handle(happened, {}, now, out);
}

void replay_plan::end_dialogue(time now, effects& out) {
  if (consumer_) {
    dm::daemon_events happened;
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

}  // namespace kclxx::replay
