// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/script.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

#include "daemon_model/lines.hpp"
#include "protocol/decoder.hpp"

namespace kclxx::replay {

using daemon_model::child_checkpoint;
using daemon_model::child_message;
using daemon_model::child_status;

namespace {

template <class Value>
std::string text_of(const Value& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

bool is_compared(const child_message& line) {
  return std::holds_alternative<child_status>(line) ||
         std::holds_alternative<child_checkpoint>(line);
}

/// A checkpoint without a sub-sequence number means 0 to the daemon.
child_message normal(child_message line) {
  if (auto* asked = std::get_if<child_checkpoint>(&line)) {
    if (asked->sequence_number && !asked->sub_sequence_number) asked->sub_sequence_number = 0;
    if (!asked->sequence_number) asked->sub_sequence_number.reset();
  }
  return line;
}

}  // namespace

void recording::on_child_line(std::string_view line, std::size_t line_number) {
  if (!compares_) return;
  // To the daemon a carriage return ends a line, too, and a capture has lines as the child ends
  // them.
  while (!line.empty()) {
    const std::string_view one = line.substr(0, line.find('\r'));
    child_message content = normal(daemon_model::parse_child_message(one));
    if (is_compared(content)) messages_.push_back({std::move(content), line_number});
    line.remove_prefix(std::min(one.size() + 1, line.size()));
  }
}

void recording::on_answer(const transcript::line_summary& line) {
  answers_.push_back({{line.sequence_number, line.sub_sequence_number}, line.error});
}

std::optional<std::string> recording::take_failure(const child_checkpoint& asked) {
  const child_message wanted = normal(asked);
  const auto found = std::find_if(answers_.begin(), answers_.end(), [&](const answer& given) {
    return normal(given.asked) == wanted;
  });
  if (found == answers_.end()) return std::nullopt;
  auto error = std::move(found->error);
  answers_.erase(answers_.begin(), found + 1);
  return error;
}

bool recording::has_lost_lease() const noexcept {
  return std::any_of(answers_.begin(), answers_.end(),
                     [](const answer& given) { return given.error == "ShutdownException"; });
}

void recording::compare(const child_message& said, std::string_view line,
                        diagnostics& differences) {
  if (!compares_ || !is_compared(said)) return;
  const child_message got = normal(said);
  const bool is_status = std::holds_alternative<child_status>(got);
  // An action ends with its status; where that is missing, the recording ended before it.
  if (messages_.empty()) return;
  const message& wanted = messages_.front();
  if (wanted.content == got) {
    messages_.pop_front();
    return;
  }
  differences.add(
      wanted.line_number,
      "recorded was " + text_of(wanted.content) + ", but the child wrote " + text_of(got), line);
  // The two continue together after the status: one that checkpoints more often, or less, differs
  // there and not from there on.
  if (!is_status) {
    if (std::holds_alternative<child_checkpoint>(wanted.content)) messages_.pop_front();
    return;
  }
  while (!messages_.empty()) {
    const bool was_status = std::holds_alternative<child_status>(messages_.front().content);
    messages_.pop_front();
    if (was_status) break;
  }
}

using protocol::action_kind;
using transcript::line_kind;

namespace {

// To the daemon model an unknown action is like processRecords: checkpoints are allowed in it, and
// it may come any number of times.
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
  std::size_t data_bytes = 0;  // of the records' data, without base64
};

/// A processRecords line, as the daemon writes it, with those records of `line` that are after
/// `persisted`; std::nullopt when all of them are. Precondition: `line` is a batch that
/// decodes.
std::optional<partial_batch> batch_after(std::string_view line,
                                         const sequence_position& persisted) {
  std::string memory(line);
  memory.append(protocol::decoder::padding, '\0');
  std::vector<record> records;
  std::deque<std::string> arena;
  bool has_replaced_utf8 = false;
  const auto decoded =
      protocol::decoder().decode(memory.data(), line.size(), records, arena, has_replaced_utf8);
  const std::size_t all = records.size();
  std::erase_if(records, [&](const record& one) { return one.position() <= persisted; });
  if (records.size() == all) return std::nullopt;
  const auto& batch =
      std::get<protocol::process_records>(std::get<protocol::message>(decoded).body);
  std::optional<std::int64_t> behind;
  if (batch.millis_behind_latest) behind = batch.millis_behind_latest->count();
  partial_batch rest{daemon_model::process_records_line(records, behind), records.size()};
  for (const record& one : records) rest.data_bytes += one.data().size();
  return rest;
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
    case entry_kind::end_of_input:  // comes after the last status
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
  action next{kind_of(content.kind), content.action, entry.line_number, entry.at};
  next.content = std::move(content);
  next.recorded_line = entry.line;
  if (persisted_ && !cut_to_successor(next)) return;
  ahead_ = std::move(next);
}

// As the daemon does for a successor: initialize has the position, and a batch begins after it.
bool script::cut_to_successor(action& next) {
  if (next.kind == action_kind::initialize) {
    next.content.position = persisted_;
    next.own = daemon_model::initialize_line(next.content.shard_id.value_or(""), persisted_);
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
  if (auto rest = batch_after(next.recorded_line, persisted)) {
    faults_.skip(next.content.records - rest->records, false);
    next.content.records = rest->records;
    next.content.data_bytes = rest->data_bytes;
    next.own = std::move(rest->line);
  }
  return true;
}

std::optional<script::action> script::next() {
  auto taken = take_next();
  if (!taken) return std::nullopt;
  line_number_ = taken->line_number;
  is_last_ = taken->is_last;
  if (!recorded_) recorded_.emplace(options_.compares);
  if (!taken->is_injected) recorded_->begin();
  return taken;
}

// That of the transcript, or what the faults put before it or in place of the rest.
std::optional<script::action> script::take_next() {
  if (is_last_) return std::nullopt;
  if (faults_.is_lease_lost())
    return injected(action_kind::lease_lost, protocol::action_name(action_kind::lease_lost), true);
  if (ahead_ && ahead_->content.kind == line_kind::process_records) {
    if (faults_.shutdown_replaces_it()) {
      return injected(action_kind::shutdown_requested,
                      protocol::action_name(action_kind::shutdown_requested), true);
    }
  }
  return std::exchange(ahead_, std::nullopt);
}

script::action script::injected(action_kind kind, const std::string& name, bool is_last) const {
  action made{kind, name, line_number_};
  made.own = R"({"action":")" + name + R"("})";
  made.is_injected = true;
  made.is_last = is_last;
  return made;
}

}  // namespace kclxx::replay
