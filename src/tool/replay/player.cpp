// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/player.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "base/overloaded.hpp"
#include "daemon_model/lines.hpp"
#include "protocol/decoder.hpp"
#include "tool/text.hpp"

namespace kclxx::replay {

using daemon_model::child_checkpoint;
using daemon_model::child_message;
using daemon_model::child_status;
using daemon_model::daemon_events;
using protocol::action_kind;
using tool::dialogue;
using transcript::line_kind;
using event_kind = dialogue::event_kind;

namespace {

bool is_compared(const child_message& line) {
  return std::holds_alternative<child_status>(line) ||
         std::holds_alternative<child_checkpoint>(line);
}

/// The daemon takes a checkpoint without a sub-sequence number for one with 0, and ignores the
/// sub-sequence number of one without a sequence number.
child_message normalized(child_message line) {
  if (auto* asked = std::get_if<child_checkpoint>(&line)) {
    if (asked->sequence_number && !asked->sub_sequence_number) asked->sub_sequence_number = 0;
    if (!asked->sequence_number) asked->sub_sequence_number.reset();
  }
  return line;
}

}  // namespace

void recording::on_child_line(std::string_view line, std::size_t line_number) {
  if (!compares_) return;
  // The daemon takes a carriage return for the end of a line, too. A capture cuts at newlines
  // alone.
  while (!line.empty()) {
    const std::string_view text = line.substr(0, line.find('\r'));
    child_message content = normalized(daemon_model::parse_child_message(text));
    if (is_compared(content)) messages_.push_back({std::move(content), line_number});
    line.remove_prefix(std::min(text.size() + 1, line.size()));
  }
}

void recording::on_answer(const transcript::line_summary& line) {
  answers_.push_back({{line.sequence_number, line.sub_sequence_number}, line.error});
}

std::optional<std::string> recording::take_failure(const child_checkpoint& asked) {
  const child_message wanted = normalized(asked);
  const auto found = std::find_if(
      answers_.begin(), answers_.end(),
      [&](const recorded_answer& answer) { return normalized(answer.asked) == wanted; });
  if (found == answers_.end()) return std::nullopt;
  auto error = std::move(found->error);
  answers_.erase(answers_.begin(), found + 1);
  return error;
}

bool recording::has_lost_lease() const noexcept {
  return std::any_of(answers_.begin(), answers_.end(), [](const recorded_answer& answer) {
    return answer.error == "ShutdownException";
  });
}

void recording::compare(const child_message& message, std::string_view line,
                        diagnostics& differences) {
  if (!compares_ || !is_compared(message)) return;
  // Every recorded action ends with a status. Without one the recording was cut off.
  if (messages_.empty()) return;
  const child_message written = normalized(message);
  const recorded_message& wanted = messages_.front();
  if (wanted.content == written) {
    messages_.pop_front();
    return;
  }
  differences.add(
      wanted.line_number,
      "recorded was " + to_string(wanted.content) + ", but the child wrote " + to_string(written),
      line);
  // After the status both are at the same place again: a child that checkpoints more often, or less
  // often, differs in this action and not in all that follow.
  if (!std::holds_alternative<child_status>(written)) {
    if (std::holds_alternative<child_checkpoint>(wanted.content)) messages_.pop_front();
    return;
  }
  while (!messages_.empty()) {
    const bool was_status = std::holds_alternative<child_status>(messages_.front().content);
    messages_.pop_front();
    if (was_status) break;
  }
}

namespace {

/// The daemon model takes an unknown action for processRecords: checkpoints are allowed in it, and
/// it may come any number of times.
action_kind kind_of(line_kind kind) {
  return kind == line_kind::initialize           ? action_kind::initialize
         : kind == line_kind::lease_lost         ? action_kind::lease_lost
         : kind == line_kind::shard_ended        ? action_kind::shard_ended
         : kind == line_kind::shutdown_requested ? action_kind::shutdown_requested
                                                 : action_kind::process_records;
}

struct partial_batch {
  std::string line;
  std::size_t records = 0;
  std::size_t data_bytes = 0;  ///< the data of the records, without base64
};

/// The batch of `line` without its records up to `persisted`; std::nullopt when it has none of
/// these. Precondition: `line` is a batch that decodes.
std::optional<partial_batch> batch_after(std::string_view line,
                                         const sequence_position& persisted) {
  std::string memory(line);
  memory.append(protocol::decoder::padding, '\0');
  std::vector<record> records;
  std::deque<std::string> arena;
  bool has_replaced_utf8 = false;
  const auto decoded =
      protocol::decoder().decode(memory.data(), line.size(), records, arena, has_replaced_utf8);
  const auto is_persisted = [&](const record& record) { return record.position() <= persisted; };
  if (std::erase_if(records, is_persisted) == 0) return std::nullopt;
  const auto& batch =
      std::get<protocol::process_records>(std::get<protocol::message>(decoded).body);
  std::optional<std::int64_t> behind;
  if (batch.millis_behind_latest) behind = batch.millis_behind_latest->count();
  partial_batch result{daemon_model::process_records_line(records, behind), records.size()};
  for (const record& record : records) result.data_bytes += record.data().size();
  return result;
}

}  // namespace

script::script(const options& options, fault_schedule& faults, transcript::reader& transcript,
               std::optional<sequence_position> persisted)
    : options_(options),
      faults_(faults),
      transcript_(transcript),
      persisted_(std::move(persisted)) {}

void script::look_ahead() {
  try {
    while (!ahead_ && !has_ended_) read();
  } catch (const transcript::transcript_error& error) {
    end_with(error.line_number(), error.problem());
  }
}

void script::end_with(std::size_t line_number, std::string damage) {
  damage_ = diagnostic{line_number, std::move(damage), {}};
  has_ended_ = true;
}

void script::read() {
  using transcript::entry_kind;
  transcript::entry entry;
  has_ended_ = !transcript_.next(entry);
  if (has_ended_) return;
  switch (entry.kind) {
    case entry_kind::daemon_line:
      return read_daemon_line(entry);
    case entry_kind::child_line:
      if (recorded_) recorded_->on_child_line(entry.line, entry.line_number);
      break;
    case entry_kind::exit:
    case entry_kind::killed:
      recorded_exit_ = entry;
      recorded_exit_->line = {};
      break;
    case entry_kind::end_of_input:  // the player closes the input after the last status
    case entry_kind::end_of_output:
      break;
  }
}

void script::read_daemon_line(const transcript::entry& entry) {
  auto summary = summarizer_.summarize(entry.line);
  if (const auto* error = std::get_if<protocol::decode_error>(&summary)) {
    const std::string field = error->field.empty() ? "" : error->field + " ";
    return end_with(entry.line_number, "the daemon's line: " + field + error->problem);
  }
  auto& content = std::get<transcript::line_summary>(summary);
  if (content.kind == line_kind::checkpoint_answer) {
    if (recorded_) recorded_->on_answer(content);
    return;
  }
  action next{kind_of(content.kind), content.action, entry.line_number};
  next.content = std::move(content);
  next.recorded_line = entry.line;
  if (persisted_ && !cut_to_successor(next)) return;
  ahead_ = std::move(next);
}

// The daemon, too, writes the position into a successor's initialize, and reads on after it.
bool script::cut_to_successor(action& next) {
  if (next.kind == action_kind::initialize) {
    next.content.position = persisted_;
    next.replacement =
        daemon_model::initialize_line(next.content.shard_id.value_or(""), *persisted_);
    return true;
  }
  const bool is_batch = next.content.kind == line_kind::process_records;
  const bool is_persisted = !next.content.position || *next.content.position <= *persisted_;
  if ((is_batch && is_persisted) || next.content.kind == line_kind::unknown_action) {
    if (is_batch) faults_.skip(next.content.records, true);
    if (recorded_) recorded_->begin();
    return false;
  }
  const sequence_position persisted = *std::exchange(persisted_, std::nullopt);
  if (!is_batch) return true;
  if (auto partial = batch_after(next.recorded_line, persisted)) {
    faults_.skip(next.content.records - partial->records, false);
    next.content.records = partial->records;
    next.content.data_bytes = partial->data_bytes;
    next.replacement = std::move(partial->line);
  }
  return true;
}

std::optional<script::action> script::next() {
  auto taken = take_next();
  if (!taken) return std::nullopt;
  line_number_ = taken->line_number;
  plays_injected_ = taken->is_injected;
  if (!recorded_) recorded_.emplace(options_.compares);
  if (!taken->is_injected) recorded_->begin();
  return taken;
}

// The transcript's next action, or an action that a fault puts in place of all that follow.
std::optional<script::action> script::take_next() {
  if (plays_injected_) return std::nullopt;
  if (faults_.is_lease_lost()) return injected(action_kind::lease_lost);
  const bool is_batch = ahead_ && ahead_->content.kind == line_kind::process_records;
  if (is_batch && faults_.shutdown_replaces_batch())
    return injected(action_kind::shutdown_requested);
  return std::exchange(ahead_, std::nullopt);
}

script::action script::injected(action_kind kind) const {
  action result{kind, protocol::action_name(kind), line_number_};
  result.replacement = daemon_model::action_line(kind);
  result.is_injected = true;
  return result;
}

namespace {

bool is_message(const child_message& line) {
  return !std::holds_alternative<daemon_model::blank>(line) &&
         !std::holds_alternative<daemon_model::ignored_line>(line);
}

}  // namespace

player::player(const options& options, shard_play& shard, transcript::reader& transcript,
               dialogue& child)
    : options_(options),
      shard_(shard),
      child_(child),
      script_(options, shard.faults, transcript, shard.successor_begins) {
  if (!std::exchange(shard_.successor_begins, std::nullopt)) return;
  shard_.faults.begin_successor();
  ++shard_.result.counts.successors;
}

bool player::play_next() {
  look_ahead();
  auto next = script_.next();
  if (next && prepare_action(*next)) {
    begin(std::move(*next));
    while (phase_ == phase::playing && (is_sending_ || is_open())) take_event();
  } else {
    end_dialogue();
  }
  return phase_ == phase::playing;
}

// The child has as much more time as the source of the transcript takes.
void player::look_ahead() {
  const time before = child_.now();
  script_.look_ahead();
  status_deadline_ += child_.now() - before;
  if (const auto& problem = script_.damage()) damage(problem->transcript_line, problem->what);
}

bool player::prepare_action(const script::action& next) {
  if (!consumer_ && next.kind != action_kind::initialize) {
    damage(next.line_number, "the dialogue does not begin with initialize");
    return false;
  }
  if (!consumer_) begin_shard(next);
  if (consumer_->can_call(next.kind)) return true;
  damage(next.line_number, "a daemon sends no " + next.name + " here");
  return false;
}

void player::begin_shard(const script::action& first) {
  shard_.result.shard = first.content.shard_id.value_or("");
  lease_.emplace(first.content.position.value_or(sequence_position("TRIM_HORIZON")));
  lease_->set_fault([this](const sequence_position&) {
    auto failure = shard_.faults.checkpoint_failure();
    return failure ? failure : recorded_failure_;
  });
  consumer_.emplace(*lease_);
  shard_.faults.begin_shard(shard_.result.shard);
}

void player::begin(script::action next) {
  current_ = std::move(next);
  const bool is_batch = current_.content.kind == line_kind::process_records;
  if (is_batch) {
    shard_.faults.begin_batch(current_.content.records);
    if (shard_.faults.is_lease_lost()) lease_->lose();
  }
  action_began_ = child_.now();
  status_deadline_ = action_began_ + options_.timeout;
  if (!shard_.first_action_began) shard_.first_action_began = action_began_;
  shard_.result.counts.line_bytes += current_.line().size() + 1;
  if (options_.keeps_timeline && current_.content.position &&
      current_.kind == action_kind::process_records) {
    shard_.result.timeline.deliver(*current_.content.position, shard_.faults.records());
  }
  is_sending_ = true;
  child_.send(current_.line());
  daemon_events happened;
  consumer_->call(current_.kind, current_.name, is_batch ? current_.content.position : std::nullopt,
                  happened);
  handle(happened, {}, action_began_);
}

void player::take_event() {
  const auto event = child_.next(
      status_deadline_, is_open() ? dialogue::output::is_read : dialogue::output::stays_unread);
  switch (event.what) {
    case event_kind::line:
      // A child that prints without end has not answered either.
      if (event.at >= status_deadline_) return fail(no_status({}));
      return on_line(std::string(event.line), event.at);
    case event_kind::input_broken:
      input_broke_ = true;
      [[fallthrough]];
    case event_kind::sent:
      return on_sent(event.at);
    case event_kind::end_of_output:
      return on_end_of_output();
    case event_kind::timed_out:
      return fail(is_open() ? no_status(event.line) : not_read());
  }
}

void player::on_sent(time now) {
  is_sending_ = false;
  line_sent_ = now;
  switch (shard_.faults.take_what_follows_line()) {
    case fault_schedule::after_line::nothing:
      break;
    case fault_schedule::after_line::kill:
      return kill_by_fault();
    case fault_schedule::after_line::end_of_input:
      ended_by_fault_ = true;
      return end_dialogue();
  }
}

void player::on_line(const std::string& line, time now) {
  const child_message message = daemon_model::parse_child_message(line);
  if (is_message(message) && !prepare_message(message, line, now)) return;
  daemon_events happened;
  consumer_->on_line(line, happened);
  handle(happened, line, now);
}

// Returns false when the dialogue is over.
bool player::prepare_message(const child_message& message, const std::string& line, time now) {
  const auto* const asked = std::get_if<child_checkpoint>(&message);
  // The daemon writes an answer, and the next action, only after the line that it is writing.
  if (is_sending_) {
    if (await_sent()) {
      on_sent(child_.now());
    } else {
      fail(asked != nullptr ? std::string(daemon_model::unread_answer) : not_read());
    }
    if (phase_ != phase::playing) return false;
  }
  look_ahead();
  if (now < action_began_ && std::holds_alternative<child_status>(message)) {
    breach("the daemon takes this status, which was there before " + current_.name +
               " was sent, for the answer to it",
           line);
  }
  recorded_failure_.reset();
  if (asked != nullptr) {
    ++shard_.result.counts.checkpoints_asked;
    if (shard_.faults.draw_kill()) {
      kill_by_fault();
      return false;
    }
    if (options_.repeats_failures && !current_.is_injected) {
      recorded_failure_ = script_.recorded().take_failure(*asked);
    }
  }
  if (!current_.is_injected) {
    script_.recorded().compare(message, line, shard_.result.differences);
  }
  return true;
}

// Takes no line of the child meanwhile. Returns false when the child has not read in time.
bool player::await_sent() {
  const auto what = child_.next(status_deadline_, dialogue::output::stays_unread).what;
  input_broke_ |= what == event_kind::input_broken;
  return what != event_kind::timed_out;
}

void player::handle(const daemon_events& events, const std::string& line, time now) {
  for (const daemon_model::daemon_event& event : events) {
    std::visit(
        overloaded{
            [&](const daemon_model::answered& answer) { on_answered(answer, line); },
            [&](const daemon_model::skipped& skipped) {
              breach("the daemon skips this line: " + skipped.why, skipped.line);
            },
            [&](const daemon_model::returned&) { on_returned(line, now); },
            [&](const daemon_model::failed& failed) {
              if (output_ended_) {
                blame(failed.why);
              } else {
                breach(failed.why, line);
              }
            },
            [&](const daemon_model::shard_end_not_checkpointed&) {
              breach("the end of the shard is not checkpointed: its child shards are never read",
                     line);
            },
            [&](const daemon_model::close_input&) { close(); },
            [&](const daemon_model::lost_line& lost) { on_lost_line(lost.line); },
            [&](const daemon_model::worker_ended& ended) { on_worker_ended(ended.why, line); },
        },
        event);
  }
  // An action that a fault or a breach has cut off is not the transcript's mistake.
  if (phase_ != phase::closing || is_end_explained() || current_.is_injected) return;
  look_ahead();
  if (const auto& ahead = script_.ahead()) {
    damage(ahead->line_number, "a daemon sends no " + ahead->name + " after " + current_.name);
  }
}

void player::on_answered(const daemon_model::answered& answer, const std::string& line) {
  summary& result = shard_.result;
  ++result.counts.checkpoints_answered;
  if (answer.error) ++result.counts.checkpoints_failed;
  if (options_.keeps_timeline) {
    result.timeline.add_checkpoint(answer.error.has_value());
    result.timeline.persist(lease_->checkpoint());
  }
  if (answer.error && !answer.attempted) {
    breach("the daemon refuses this checkpoint in " + current_.name + ": " + *answer.error, line);
  }
  child_.send(answer.line);
  if (!await_sent()) fail(std::string(daemon_model::unread_answer));
}

void player::on_returned(const std::string& line, time now) {
  summary& result = shard_.result;
  if (!result.first_status) result.first_status = now;
  result.last_status = now;
  // A status before the line was written took no time.
  const auto callback = std::max<std::chrono::nanoseconds>(now - line_sent_, {});
  if (current_.content.kind == line_kind::process_records) {
    result.counts.callbacks.add(callback);
    ++result.counts.batches;
    result.counts.records += current_.content.records;
    result.counts.data_bytes += current_.content.data_bytes;
  }
  if (options_.keeps_timeline) add_span(callback, now);
  if (options_.repeats_failures && !current_.is_injected && script_.recorded().has_lost_lease()) {
    lease_->lose();
  }
  if (!input_broke_) return;
  on_worker_ended(current_.name + ": the child answered, but had stopped to read", line);
  end_dialogue();
}

void player::add_span(std::chrono::nanoseconds callback, time now) {
  span interval{current_.name};
  interval.repeats = current_.kind == action_kind::process_records;
  interval.begin = action_began_ - *shard_.first_action_began;
  interval.end = now - *shard_.first_action_began;
  if (interval.repeats) interval.callback = callback;
  interval.behind = current_.content.millis_behind_latest;
  shard_.result.timeline.add(std::move(interval));
}

void player::on_lost_line(const std::string& line) {
  const child_message message = daemon_model::parse_child_message(line);
  if (std::holds_alternative<child_checkpoint>(message)) ++shard_.result.counts.checkpoints_asked;
  if (is_message(message) && !is_end_explained()) {
    breach("nobody reads this line: it came after the last status", line);
  }
}

void player::on_worker_ended(const std::string& reason, const std::string& line) {
  worker_ended_ = true;
  if (output_ended_) {
    blame(reason);
  } else if (!was_killed_) {
    breach(reason + "; the daemon ends the whole worker", line);
  }
}

void player::on_end_of_output() {
  output_ended_ = true;
  daemon_events happened;
  consumer_->on_end_of_output(happened);
  handle(happened, {}, child_.now());
}

void player::end_dialogue() {
  if (!consumer_) return close();
  daemon_events happened;
  consumer_->close(happened);
  handle(happened, {}, child_.now());
}

void player::close() {
  phase_ = phase::closing;
  child_.close_input();
}

void player::breach(std::string message, std::string_view line) {
  shard_.result.breaches.add(current_.line_number, std::move(message), line);
}

// The first damage is kept, and so is the first failure: what follows may come from it.
void player::damage(std::size_t transcript_line, std::string message) {
  auto& damage = shard_.result.damage;
  if (!damage) damage = diagnostic{transcript_line, std::move(message), {}};
}

void player::blame(std::string reason) {
  auto& failure = shard_.result.failure;
  if (!failure) failure = diagnostic{current_.line_number, std::move(reason), {}};
}

void player::fail(std::string reason) {
  blame(std::move(reason));
  kill();
}

void player::kill_by_fault() {
  was_killed_by_fault_ = true;
  ended_by_fault_ = true;
  kill();
}

void player::kill() {
  was_killed_ = true;
  phase_ = phase::killed;
  child_.kill(SIGKILL);
}

std::string player::no_status(std::string_view unfinished) const {
  const std::string text = "no status for " + current_.name + within_limit();
  if (unfinished.empty()) return text;
  return text + "; without a newline at its end: " + std::string(unfinished.substr(0, 200));
}

std::string player::not_read() const {
  return current_.name + " was answered, but not read" + within_limit();
}

std::string player::within_limit() const { return " within " + tool::to_text(options_.timeout); }

void player::finish() {
  if (phase_ == phase::closing) drain();
  for (;;) {
    const auto exit = child_.wait_exit(child_.now() + options_.timeout);
    if (exit) return conclude(*exit);
    fail("the child did not leave, or its stderr was held open," + within_limit() +
         " of the end of its output");
  }
}

// Reads to the end of the child's output, as the daemon does.
void player::drain() {
  const time deadline = child_.now() + options_.timeout;
  for (;;) {
    const auto event = child_.next(deadline, dialogue::output::is_read);
    if (event.what == event_kind::end_of_output) return;
    if (event.what == event_kind::timed_out || event.at >= deadline) {
      return fail("the child did not close its output" + within_limit() +
                  " of the end of its input");
    }
    if (event.what == event_kind::line) on_lost_line(std::string(event.line));
  }
}

void player::judge_exit(const tool::child_exit& exit) {
  if (was_killed_) return;
  if (auto& failure = shard_.result.failure; failure && output_ended_) {
    failure->what += ", " + to_string(exit);
  } else if (!exit.is_success() && !is_end_explained()) {
    blame("the child left with " + to_string(exit));
  }
}

void player::conclude(const tool::child_exit& exit) {
  judge_exit(exit);
  if (was_killed_by_fault_ && lease_->checkpoint() != sequence_position("SHARD_END")) {
    shard_.successor_begins = lease_->checkpoint();
    return;
  }
  summary& result = shard_.result;
  for (std::string& note : shard_.faults.unmet()) result.notes.push_back(std::move(note));
  result.had_fault = shard_.faults.had_fault();
  if (!lease_) return damage(1, "there is no dialogue in it: no line of the daemon");
  result.resume = lease_->checkpoint();
  const auto& recorded = script_.recorded_exit();
  if (!options_.compares || !recorded || ended_by_fault_) return;
  const bool was_signal = recorded->kind == transcript::entry_kind::killed;
  const std::string was = to_string(was_signal ? tool::child_exit{0, recorded->number}
                                               : tool::child_exit{recorded->number, 0});
  if (was == to_string(exit)) return;
  result.differences.add(recorded->line_number,
                         "recorded was " + was + ", but the child left with " + to_string(exit));
}

}  // namespace kclxx::replay
