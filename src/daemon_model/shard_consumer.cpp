// SPDX-License-Identifier: Apache-2.0
#include "daemon_model/shard_consumer.hpp"

#include <cstddef>

#include "base/overloaded.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::daemon_model {

using outcome = shard_record_processor_checkpointer::outcome;

namespace {

constexpr std::string_view shard_end = "SHARD_END";

/// The order of the KCL's positions (P35). Two positions SHARD_END are equal in it, whatever their
/// sub-sequence numbers are.
bool is_after(const sequence_position& a, const sequence_position& b) {
  return a > b && !(a.sequence_number() == shard_end && b.sequence_number() == shard_end);
}

/// Whether the KCL takes two positions for the same. It compares the texts, so 0101 is not 101.
bool is_same(const sequence_position& a, const sequence_position& b) {
  return a.sequence_number() == b.sequence_number() &&
         a.sub_sequence_number() == b.sub_sequence_number();
}

}  // namespace

outcome shard_record_processor_checkpointer::checkpoint(const child_checkpoint& asked) {
  if (!asked.sequence_number) return advance(largest_permitted_);
  const auto position = permitted(asked);
  if (!position) return {"IllegalArgumentException"};
  return advance(*position);
}

std::optional<sequence_position> shard_record_processor_checkpointer::permitted(
    const child_checkpoint& asked) const {
  const std::int64_t sub = asked.sub_sequence_number.value_or(0);
  if (sub < 0) return std::nullopt;
  // A number with more digits than a position can have lies beyond what was delivered.
  auto position = sequence_position::parse(*asked.sequence_number, static_cast<std::uint64_t>(sub));
  if (!position) return std::nullopt;
  if (is_after(last_, *position) || is_after(*position, largest_permitted_)) return std::nullopt;
  return position;
}

outcome shard_record_processor_checkpointer::advance(const sequence_position& position) {
  // The daemon does nothing for the position that is persisted already. So at the shard's end that
  // position does not mean the end (P48).
  if (is_same(position, last_)) return {};
  const bool means_end = last_of_shard_ && is_same(position, *last_of_shard_);
  const sequence_position recorded = means_end ? sequence_position(shard_end) : position;
  const auto error = lease_.set_checkpoint(recorded);
  if (!error) last_ = recorded;
  return {error, recorded};
}

bool shard_consumer::can_call(action_kind kind) const noexcept {
  if (open_call_ || is_closed_) return false;
  if (kind == action_kind::initialize) return !is_initialized_;
  if (!is_initialized_) return false;
  // P28: after shutdownRequested come an ending or the end of input, never records.
  if (kind == action_kind::process_records || kind == action_kind::shutdown_requested) {
    return !shutdown_was_requested_;
  }
  return true;
}

void shard_consumer::call(action_kind kind, std::string_view action,
                          const std::optional<sequence_position>& largest, daemon_events& out) {
  if (largest) checkpointer_.deliver(*largest);
  if (kind == action_kind::shard_ended) checkpointer_.begin_shard_end();
  if (kind == action_kind::lease_lost) lease_.lose();
  if (kind == action_kind::initialize) is_initialized_ = true;
  if (kind == action_kind::shutdown_requested) shutdown_was_requested_ = true;
  open_call_ = call_in_progress{kind, std::string(action)};
  read(out);
}

void shard_consumer::on_line(std::string_view line, daemon_events& out) {
  if (is_closed_) {
    out.emplace_back(lost_line{std::string(line)});
    return;
  }
  for (std::size_t end = line.find('\r'); end != std::string_view::npos; end = line.find('\r')) {
    unread_lines_.emplace_back(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  unread_lines_.emplace_back(line);
  read(out);
}

void shard_consumer::on_end_of_output(daemon_events& out) {
  if (std::exchange(output_ended_, true)) return;
  read(out);
}

void shard_consumer::close(daemon_events& out) {
  if (is_closed_) return;
  open_call_.reset();
  close_child(out);
}

void shard_consumer::read(daemon_events& out) {
  while (open_call_ && !unread_lines_.empty()) {
    const std::string line = std::move(unread_lines_.front());
    unread_lines_.pop_front();
    read_line(line, out);
  }
  if (open_call_ && output_ended_) fail("the child's output ended", out);
}

void shard_consumer::read_line(const std::string& line, daemon_events& out) {
  const child_message message = parse_child_message(line);
  if (const auto* status = std::get_if<child_status>(&message)) {
    if (status->response_for == open_call_->action) {
      finish(out);
    } else {
      std::string answered_action = "nothing";
      if (status->response_for) {
        answered_action.clear();
        protocol::append_quoted(answered_action, *status->response_for);
      }
      fail("the status is for " + answered_action + " instead of " + open_call_->action, out);
    }
  } else if (const auto* asked = std::get_if<child_checkpoint>(&message)) {
    answer(*asked, out);
  } else if (const auto* ignored = std::get_if<ignored_line>(&message)) {
    out.emplace_back(skipped{line, ignored->why, ignored->because});
  } else if (const auto* unexpected = std::get_if<unexpected_message>(&message)) {
    out.emplace_back(skipped{line, "only the daemon sends " + unexpected->action});
  } else if (std::holds_alternative<null_message>(message)) {
    out.emplace_back(skipped{line, "null is not a message"});
    fail("the daemon fails on a null message", out);
  }
}

// In initialize and in leaseLost the daemon has no checkpointer (P38).
bool shard_consumer::has_checkpointer() const noexcept {
  return open_call_->kind != action_kind::initialize && open_call_->kind != action_kind::lease_lost;
}

void shard_consumer::answer(const child_checkpoint& asked, daemon_events& out) {
  shard_record_processor_checkpointer::outcome result{"InvalidStateException", {}};
  if (has_checkpointer()) result = checkpointer_.checkpoint(asked);
  out.emplace_back(
      answered{asked, result.error, result.attempted,
               checkpoint_line(asked.sequence_number, asked.sub_sequence_number, result.error)});
}

void shard_consumer::finish(daemon_events& out) {
  const action_kind kind = open_call_->kind;
  open_call_.reset();
  out.emplace_back(returned{kind});
  if (kind == action_kind::shard_ended && checkpointer_.last() != sequence_position("SHARD_END")) {
    out.emplace_back(shard_end_not_checkpointed{});
  }
  if (kind == action_kind::shard_ended || kind == action_kind::lease_lost) close_child(out);
}

void shard_consumer::fail(std::string reason, daemon_events& out) {
  const call_in_progress call = *std::exchange(open_call_, std::nullopt);
  reason = call.action + ": " + reason;
  if (call.kind == action_kind::shutdown_requested) {
    // The failure is only logged (P27). The next call then finds out what became of the child.
    out.emplace_back(failed{call.kind, std::move(reason)});
    return;
  }
  close_child(out);
  worker_ended_ = true;
  out.emplace_back(worker_ended{std::move(reason)});
}

void shard_consumer::close_child(daemon_events& out) {
  is_closed_ = true;
  out.emplace_back(close_input{});
  for (std::string& line : unread_lines_) out.emplace_back(lost_line{std::move(line)});
  unread_lines_.clear();
}

std::string to_string(const child_message& line) {
  return std::visit(
      overloaded{
          [](const blank&) { return std::string("an empty line"); },
          [](const ignored_line& ignored) { return "ignored: " + ignored.why; },
          [](const child_status& status) {
            return "status for " + status.response_for.value_or("nothing");
          },
          [](const child_checkpoint& asked) {
            return "checkpoint " + asked.sequence_number.value_or("null") +
                   (asked.sequence_number && asked.sub_sequence_number
                        ? "/" + std::to_string(*asked.sub_sequence_number)
                        : "");
          },
          [](const unexpected_message& unexpected) { return "a daemon's " + unexpected.action; },
          [](const null_message&) { return std::string("null"); },
      },
      line);
}

std::string to_string(const daemon_event& event) {
  return std::visit(
      overloaded{
          [](const answered& answer) {
            return to_string(child_message(answer.asked)) +
                   " answered: " + answer.error.value_or("ok") +
                   (answer.attempted ? ", at the lease: " + to_string(*answer.attempted) : "");
          },
          [](const skipped& skip) { return "skipped (" + skip.why + "): " + skip.line; },
          [](const returned& call) {
            return std::string(protocol::action_name(call.kind)) + " returned";
          },
          [](const failed& failure) { return "failed: " + failure.why; },
          [](const shard_end_not_checkpointed&) {
            return std::string("the end of the shard is not checkpointed");
          },
          [](const close_input&) { return std::string("close the child's input"); },
          [](const lost_line& lost) { return "nobody reads: " + lost.line; },
          [](const worker_ended& end) { return "the worker ends: " + end.why; },
      },
      event);
}

}  // namespace kclxx::daemon_model
