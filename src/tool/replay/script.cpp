// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/script.hpp"

#include <utility>
#include <variant>

#include "daemon_model/lines.hpp"
#include "tool/replay/rest_of_batch.hpp"

namespace kclxx::replay {

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

void script::action::use_own_line(std::string line) {
  size = line.size() + 1;
  own = std::move(line);
}

script::script(const options& how, fault_schedule& faults,
               std::optional<sequence_position> persisted)
    : how_(how), faults_(faults), persisted_(std::move(persisted)) {}

std::optional<std::string> script::read(const transcript::summarized_entry& next) {
  using transcript::entry_kind;
  const transcript::entry& entry = next.content;
  switch (entry.kind) {
    case entry_kind::daemon_line:
      return read_daemon_line(next);
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
  return std::nullopt;
}

std::optional<std::string> script::read_daemon_line(const transcript::summarized_entry& from) {
  const transcript::entry& entry = from.content;
  if (const auto* error = std::get_if<protocol::decode_error>(&from.summary)) {
    const std::string field = error->field.empty() ? "" : error->field + " ";
    return "the daemon's line: " + field + error->what;
  }
  const auto& content = std::get<transcript::line_summary>(from.summary);
  if (content.kind == line_kind::checkpoint_answer) {
    if (recorded_) recorded_->on_answer(content);
    return std::nullopt;
  }
  action next{kind_of(content.kind), content.action, entry.line_number, entry.at};
  next.content = content;
  next.size = entry.line.size() + 1;
  if (persisted_ && !leave_out_persisted(entry.line, next)) return std::nullopt;
  if (how_.recorded_pace && !entry.at) {
    return "the line has no time, so there is no recorded pace";
  }
  ahead_ = std::move(next);
  return std::nullopt;
}

// As the daemon does for a successor: initialize has the position, and a batch begins after it.
bool script::leave_out_persisted(std::string_view line, action& next) {
  if (next.what == action_kind::initialize) {
    next.content.position = persisted_;
    next.use_own_line(
        daemon_model::initialize_line(next.content.shard_id.value_or(""), persisted_));
    return true;
  }
  const bool is_batch = next.content.kind == line_kind::process_records;
  const bool is_persisted = !next.content.position || *next.content.position <= *persisted_;
  if ((is_batch && is_persisted) || next.content.kind == line_kind::unknown_action) {
    if (is_batch) faults_.skip(next.content.records, true);
    if (recorded_) recorded_->begin(next.what, next.content.position);
    return false;
  }
  const sequence_position persisted = *std::exchange(persisted_, std::nullopt);
  if (!is_batch) return true;
  if (auto rest = rest_of_batch(line, persisted)) {
    faults_.skip(next.content.records - rest->records, false);
    next.content.records = rest->records;
    next.content.data_bytes = rest->data_bytes;
    next.use_own_line(std::move(rest->line));
  }
  return true;
}

std::optional<script::action> script::next() {
  auto taken = take_next();
  if (!taken) return std::nullopt;
  line_number_ = taken->line_number;
  is_last_ = taken->is_last;
  if (!recorded_) recorded_.emplace(how_.expected, taken->content.position);
  if (!taken->own) recorded_->begin(taken->what, taken->content.position);
  return taken;
}

// That of the transcript, or what the faults put before it.
std::optional<script::action> script::take_next() {
  if (is_last_) return std::nullopt;
  if (faults_.is_lease_lost())
    return injected(action_kind::lease_lost, protocol::action_name(action_kind::lease_lost), true);
  if (ahead_ && ahead_->content.kind == line_kind::process_records) {
    if (faults_.shutdown_replaces_it(ahead_->content.records)) {
      return injected(action_kind::shutdown_requested,
                      protocol::action_name(action_kind::shutdown_requested), true);
    }
    if (faults_.unknown_action_comes_first()) {
      return injected(action_kind::process_records, unknown_action, false);
    }
  }
  return std::exchange(ahead_, std::nullopt);
}

script::action script::injected(action_kind what, std::string name, bool is_last) const {
  action made{what, name, line_number_};
  made.use_own_line(R"({"action":")" + name + R"("})");
  made.is_last = is_last;
  return made;
}

}  // namespace kclxx::replay
