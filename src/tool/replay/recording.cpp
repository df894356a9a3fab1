// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/recording.hpp"

#include <algorithm>
#include <sstream>
#include <variant>

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

recording::recording(expectation expected, const std::optional<sequence_position>& start)
    : expected_(expected),
      lease_(start.value_or(sequence_position("TRIM_HORIZON"))),
      checkpointer_(daemon_model::kcl::v2_1, lease_) {}

void recording::begin(protocol::action_kind kind, const std::optional<sequence_position>& largest) {
  answers_.clear();
  if (largest) checkpointer_.deliver(*largest);
  if (kind == protocol::action_kind::shard_ended) checkpointer_.begin_shard_end();
}

void recording::on_child_line(std::string_view line, std::size_t line_number) {
  if (expected_ != expectation::answers) return;
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
  answer given{{line.sequence_number, line.sub_sequence_number}, line.error};
  // What did not fail shows how far the recorded child came.
  if (!given.error) static_cast<void>(checkpointer_.checkpoint(given.asked));
  answers_.push_back(std::move(given));
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
  if (expected_ != expectation::answers || !is_compared(said)) return;
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

void recording::compare_final(const sequence_position& reached, std::size_t line_number,
                              diagnostics& differences) const {
  if (expected_ != expectation::final_position || reached == lease_.checkpoint()) return;
  differences.add(line_number, "recorded was the final position " + to_string(lease_.checkpoint()) +
                                   ", but this child reached " + to_string(reached));
}

}  // namespace kclxx::replay
