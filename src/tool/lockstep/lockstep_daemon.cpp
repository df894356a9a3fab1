// SPDX-License-Identifier: Apache-2.0
#include "tool/lockstep/lockstep_daemon.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "protocol/json_string.hpp"
#include "protocol/message.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

using namespace std::chrono_literals;
using event_kind = dialogue::event_kind;
using protocol::action_kind;

constexpr std::int64_t some_millis_behind = 1200;
constexpr std::chrono::milliseconds arrival{1'700'000'000'000};
// Limits on what is kept of a child that writes without end.
constexpr std::size_t max_kept = 1000;
constexpr std::size_t max_early_lines = 100'000;
constexpr std::size_t max_checkpoints = 100'000;
constexpr std::string_view retry_option = " (--retry-limit)";

action action_of(action_kind kind) {
  return {kind, protocol::action_name(kind), daemon_model::action_line(kind)};
}

/// Whether the line is a message that has a wrong field. Other lines that the daemon skips are
/// none.
bool is_field_fault(const daemon_model::skipped& line) {
  using reason = daemon_model::ignored_line::reason;
  return line.because == reason::unknown_field || line.because == reason::wrong_type;
}

/// Whether a child is right to ask again after this error.
bool may_succeed_later(std::string_view error) {
  return error != "ShutdownException" && error != "InvalidStateException" &&
         error != "IllegalArgumentException";
}

}  // namespace

action records_action(const std::vector<record>& records, std::int64_t millis_behind_latest) {
  action batch{action_kind::process_records, "processRecords",
               daemon_model::process_records_line(records, millis_behind_latest)};
  if (!records.empty()) batch.largest = records.back().position();
  return batch;
}

action records_of(const std::vector<std::string>& payloads, std::uint64_t first) {
  std::vector<std::string> numbers;
  numbers.reserve(payloads.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) numbers.push_back(std::to_string(first + i));
  std::vector<record> records;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    records.emplace_back(record::fields{payloads[i], "key", numbers[i], 0, arrival});
  }
  return records_action(records, some_millis_behind);
}

action aggregated_records_of(const std::vector<std::string>& payloads,
                             std::string_view sequence_number, std::size_t first) {
  std::vector<record> records;
  for (const std::string& payload : payloads) {
    records.emplace_back(
        record::fields{payload, "key", sequence_number, first + records.size(), arrival});
  }
  return records_action(records, some_millis_behind);
}

action raw_records(std::string_view records, std::uint64_t largest,
                   std::string_view millis_behind) {
  std::string line = R"({"action":"processRecords","records":[)";
  line.append(records).append("],\"millisBehindLatest\":").append(millis_behind).append("}");
  return {action_kind::process_records, "processRecords", std::move(line),
          sequence_position(std::to_string(largest))};
}

action shutdown_requested() { return action_of(action_kind::shutdown_requested); }
action lease_lost() { return action_of(action_kind::lease_lost); }
action shard_ended() { return action_of(action_kind::shard_ended); }

action old_shutdown(std::string_view reason) {
  return {
      protocol::is_shard_end(reason).value() ? action_kind::shard_ended : action_kind::lease_lost,
      "shutdown", R"({"action":"shutdown","reason":")" + std::string(reason) + "\"}"};
}

action unknown_action() {
  // The model takes it for a batch without records, and answers a checkpoint as it does there.
  return {action_kind::process_records, "tomorrowsAction",
          R"({"action":"tomorrowsAction","level":1})"};
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 200;
  std::string out;
  protocol::append_quoted(out, text.substr(0, longest));
  if (text.size() > longest) out += " and " + std::to_string(text.size() - longest) + " bytes more";
  return out;
}

std::string shard_name(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return "shardId-" + std::string(12 - digits.size(), '0') + digits;
}

std::string to_string(const std::optional<child_exit>& end, std::chrono::milliseconds limit) {
  if (!end) return "it did not end, or its output was held open, for " + to_text(limit);
  return end->signal != 0 ? to_string(*end) + " ended it" : "it left with " + to_string(*end);
}

std::string to_string(const checkpoint_seen& checkpoint) {
  std::string text = "a checkpoint with sequence number ";
  if (!checkpoint.asked.sequence_number) return text + "null";
  text += in_quotes(*checkpoint.asked.sequence_number);
  if (!checkpoint.asked.sub_sequence_number) return text + " and no sub-sequence number";
  return text + " and sub-sequence number " + std::to_string(*checkpoint.asked.sub_sequence_number);
}

std::optional<sequence_position> position_of(const checkpoint_seen& checkpoint) {
  if (!checkpoint.asked.sequence_number) return checkpoint.largest;
  const auto sub = checkpoint.asked.sub_sequence_number.value_or(0);
  if (sub < 0) return std::nullopt;
  return sequence_position::parse(*checkpoint.asked.sequence_number,
                                  static_cast<std::uint64_t>(sub));
}

lockstep_daemon::lockstep_daemon(std::unique_ptr<dialogue> child, std::string shard_id,
                                 const time_limits& limits, const sequence_position& resume_at)
    : row(resume_at),
      write_answer([this](const std::string& line) { return answer(line); }),
      child_(std::move(child)),
      shard_id_(std::move(shard_id)),
      limits_(limits),
      consumer_(row) {}

action lockstep_daemon::initialize() const {
  return {action_kind::initialize, "initialize",
          daemon_model::initialize_line(shard_id_, row.checkpoint())};
}

void lockstep_daemon::fail_writes(std::string error, std::optional<int> count,
                                  std::optional<sequence_position> only) {
  row.set_fault([error = std::move(error), failures = count, only = std::move(only)](
                    const sequence_position& position) mutable -> std::optional<std::string> {
    if ((only && position != *only) || (failures && (*failures)-- <= 0)) return std::nullopt;
    return error;
  });
}

const checkpoint_seen* lockstep_daemon::failed_with(std::string_view error) const {
  const auto failed =
      std::find_if(checkpoints.begin(), checkpoints.end(),
                   [&](const checkpoint_seen& checkpoint) { return checkpoint.error == error; });
  return failed == checkpoints.end() ? nullptr : &*failed;
}

void lockstep_daemon::call(const action& action, std::string_view circumstances) {
  const auto reaction = attempt(action);
  if (reaction.is_answered) return;
  throw breach(circumstances.empty() ? reaction.seen
                                     : std::string(circumstances) + ": " + reaction.seen);
}

void lockstep_daemon::prepare(const action& action) {
  const auto reaction = attempt(action);
  if (!reaction.is_answered) throw not_applicable(reaction.seen);
}

void lockstep_daemon::call_all(const std::vector<action>& actions) {
  for (const action& action : actions) {
    const auto reaction = attempt(action);
    if (reaction.is_answered) continue;
    for (const checkpoint_seen& checkpoint : checkpoints) {
      if (checkpoint.error) throw breach(reaction.seen);
    }
    throw not_applicable(reaction.seen);
  }
}

bool lockstep_daemon::attempt_all(const std::vector<action>& actions) {
  return std::all_of(actions.begin(), actions.end(),
                     [this](const action& action) { return attempt(action).is_answered; });
}

reaction lockstep_daemon::attempt(const action& action,
                                  std::optional<std::chrono::milliseconds> limit) {
  send(action);  // a child that does not read shows why in its output
  return await(action, limit);
}

void lockstep_daemon::send(const action& action) {
  daemon_model::daemon_events out;
  consumer_.call(action.kind, action.name, action.largest, out);
  write(action.line);
}

void lockstep_daemon::write(std::string_view text, std::string_view end) {
  if (is_sending_) return;  // the child does not read an answer
  child_->send(text, end);
  is_sending_ = true;
  keep_lines(child_->now() + limits_.step, true);
}

bool lockstep_daemon::answer(std::string_view text, std::string_view end) {
  if (is_sending_) return false;
  child_->send(text, end);
  is_sending_ = true;
  next_event(child_->now() + limits_.step, dialogue::output::stays_unread);
  return !is_sending_;
}

void lockstep_daemon::pause(std::chrono::milliseconds time) {
  next_event(child_->now() + time, dialogue::output::stays_unread);
}

void lockstep_daemon::wait_until_read() {
  const auto deadline = child_->now() + limits_.step;
  while (!child_->is_all_read() && child_->now() < deadline) pause(1ms);
}

reaction lockstep_daemon::await(const action& action,
                                std::optional<std::chrono::milliseconds> limit) {
  const auto time = limit.value_or(limits_.step);
  status_limit_ = {child_->now() + time, time, limit ? "" : " (--timeout)"};
  for (;;) {
    auto last = next_line(status_limit_.deadline);
    if (last.what == event_kind::line) {
      reaction so_far = take(last.line);
      if (so_far.is_answered || so_far.is_wrong) return so_far;
      if (is_stuck_) return {false, false, false, {}, explain_stuck(action)};
      if (child_->now() < status_limit_.deadline) continue;
      last = {event_kind::timed_out};  // a child that writes without end has not answered
    }
    const bool is_gone = last.what == event_kind::end_of_output;
    has_timed_out_ |= !is_gone;
    return {false, false, is_gone, std::string(last.line), explain(action, last)};
  }
}

dialogue::event lockstep_daemon::next_event(dialogue::clock::time_point deadline,
                                            dialogue::output lines) {
  const auto event = child_->next(deadline, lines);
  is_sending_ &= event.what != event_kind::sent && event.what != event_kind::input_broken;
  output_ended_ |= event.what == event_kind::end_of_output;
  return event;
}

dialogue::event lockstep_daemon::next_line(dialogue::clock::time_point deadline) {
  if (!early_lines_.empty()) {
    taken_line_ = std::move(early_lines_.front());
    early_lines_.pop_front();
    return {event_kind::line, taken_line_};
  }
  if (output_ended_) return {event_kind::end_of_output};
  for (;;) {
    const auto event = next_event(deadline);
    if (event.what != event_kind::sent && event.what != event_kind::input_broken) return event;
  }
}

void lockstep_daemon::keep_lines(dialogue::clock::time_point deadline, bool until_sent) {
  while (!output_ended_ && !(until_sent && !is_sending_) && early_lines_.size() < max_early_lines) {
    const auto event = next_event(deadline);
    if (event.what == event_kind::line) early_lines_.emplace_back(event.line);
    if (event.what == event_kind::timed_out || child_->now() >= deadline) return;
  }
}

bool lockstep_daemon::ends_within(std::chrono::milliseconds time) {
  keep_lines(child_->now() + time, false);
  return output_ended_;
}

reaction lockstep_daemon::take(std::string_view line) {
  reaction reaction;
  if (line.empty()) {
    is_after_blank_ = true;
    return reaction;
  }
  const action_kind during = consumer_.waits_for();
  const sequence_position last = consumer_.checkpointer().last();
  const sequence_position largest = consumer_.checkpointer().largest_permitted();
  daemon_model::daemon_events out;
  consumer_.on_line(line, out);
  bool is_message = true;
  for (const auto& event : out) {
    if (const auto* answer = std::get_if<daemon_model::answered>(&event)) {
      keep_checkpoint({during, answer->asked, answer->error, last, largest},
                      answer->attempted.has_value());
      give(*answer);
    } else if (const auto* skip = std::get_if<daemon_model::skipped>(&event)) {
      is_message = is_field_fault(*skip);
      if (noise.size() < max_kept) noise.push_back({skip->line, skip->why, is_message});
    } else if (std::holds_alternative<daemon_model::returned>(event)) {
      reaction.is_answered = true;
    } else if (const auto* wrong = std::get_if<daemon_model::worker_ended>(&event)) {
      reaction = {false, true, false, {}, wrong->why};
    } else if (const auto* bad = std::get_if<daemon_model::failed>(&event)) {
      reaction = {false, true, false, {}, bad->why};
    }
  }
  if (is_message) {
    ++messages;
    if (!std::exchange(is_after_blank_, false)) ++glued_messages;
  }
  return reaction;
}

void lockstep_daemon::keep_checkpoint(const checkpoint_seen& checkpoint, bool was_attempted) {
  if (checkpoints.size() == max_checkpoints) return;
  checkpoints.push_back(checkpoint);
  const bool has_rule =
      checkpoint.during == action_kind::initialize || checkpoint.during == action_kind::lease_lost;
  if (!checkpoint.error || was_attempted || has_rule || !refused.empty()) return;
  refused = "the daemon refuses " + to_string(checkpoint) + " in " +
            protocol::action_name(checkpoint.during) + ": " + *checkpoint.error + "; " +
            to_string(checkpoint.last) + " was persisted, " + to_string(checkpoint.largest) +
            " the largest delivered";
}

void lockstep_daemon::give(const daemon_model::answered& answer) {
  is_stuck_ = !write_answer(answer.line);
  const bool may_retry = answer.error && may_succeed_later(*answer.error);
  if (may_retry && status_limit_.option != retry_option) {
    status_limit_ = {child_->now() + limits_.retries, limits_.retries, retry_option};
  }
}

std::string lockstep_daemon::explain(const action& action, const dialogue::event& last) {
  std::string text = "no status for " + action.name + ": ";
  if (last.what == event_kind::end_of_output) {
    text += "its output ended, " + end_text();
  } else {
    text += "none within " + to_text(status_limit_.limit);
    text += status_limit_.option;
  }
  if (!last.line.empty()) text += "; without a newline at its end: " + in_quotes(last.line);
  if (!checkpoints.empty() && checkpoints.back().error) {
    text += "; the last checkpoint was " + to_string(checkpoints.back()) + ", which failed with " +
            *checkpoints.back().error;
  }
  if (!noise.empty()) {
    text += "; the daemon skipped " + in_quotes(noise.back().line) + " (" + noise.back().why + ")";
  }
  if (!action.note.empty()) text += "; " + action.note;
  return text;
}

std::string lockstep_daemon::explain_stuck(const action& action) const {
  return "no status for " + action.name + ": " + std::string(daemon_model::unread_answer) +
         ", and the child did not read that of checkpoint " + std::to_string(checkpoints.size()) +
         " within " + to_text(limits_.step) + " (--timeout)";
}

std::vector<std::string> lockstep_daemon::drain(std::chrono::milliseconds time) {
  std::vector<std::string> lines;
  const auto deadline = child_->now() + time;
  for (;;) {
    const auto event = next_line(deadline);
    const bool is_line = event.what == event_kind::line;
    if (is_line) is_after_blank_ = event.line.empty();
    if (!event.line.empty() && lines.size() < max_kept) lines.emplace_back(event.line);
    if (!is_line || child_->now() >= deadline) return lines;
  }
}

std::optional<child_exit> lockstep_daemon::leave() {
  if (!end_) {
    const auto deadline = child_->now() + limits_.step;
    child_->close_input();
    late = drain(limits_.step);
    end_.emplace(output_ended_ ? child_->wait_exit(deadline) : std::nullopt);
  }
  return *end_;
}

std::string lockstep_daemon::end_text() { return to_string(leave(), limits_.step); }

}  // namespace kclxx::tool
