// SPDX-License-Identifier: Apache-2.0
// Drives a session by hand, with functions that read as a dialogue.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session/session.hpp"
#include "support/run_options.hpp"  // IWYU pragma: export

namespace kclxx::test {

/// Each function gives one event to the session, and returns its outputs, a line each. A backoff
/// has a random part, so its time is left out if it lies within the options.
class session_dialogue {
 public:
  using lines = std::vector<std::string>;

  explicit session_dialogue(const session_options& options = {})
      : retry_(options.retry), session_(options) {
    session_.set_mode(options.mode);
  }

  lines initialize(const std::optional<sequence_position>& start = std::nullopt) {
    return receive("initialize", protocol::initialize{"shardId-0", start});
  }
  /// A batch of one record.
  lines records(std::string_view sequence_number, std::uint64_t sub = 0) {
    return receive("processRecords",
                   protocol::process_records{{}, sequence_position(sequence_number, sub)});
  }
  lines no_records() { return receive("processRecords", protocol::process_records{}); }
  lines lease_lost() { return receive("leaseLost", protocol::lease_lost{}); }
  lines older_shutdown() { return receive("shutdown", protocol::lease_lost{}); }
  lines shard_ended() { return receive("shardEnded", protocol::shard_ended{}); }
  lines shutdown_requested() {
    return receive("shutdownRequested", protocol::shutdown_requested{});
  }
  lines unknown(const std::string& name) { return receive(name, protocol::unknown_action{}); }
  /// The answer to the checkpoint that was written last.
  lines answer(const std::optional<std::string>& error = std::nullopt) {
    return answer_for(written_, error);
  }
  /// The answer to a checkpoint at this position; std::nullopt: at the end of the shard.
  lines answer_for(const std::optional<sequence_position>& position,
                   const std::optional<std::string>& error = std::nullopt) {
    return receive("checkpoint", protocol::checkpoint_answer{error, position});
  }
  lines end_of_input(bool unfinished_line = false) {
    return after([&](auto& out) { session_.on_end_of_input(unfinished_line, out); });
  }
  lines end_behind_line() {
    return after([&](auto& out) { session_.on_end_behind_line(out); });
  }
  lines failure() {
    return after(
        [&](auto& out) { session_.on_failure(exit_status::daemon_gone, "no input", out); });
  }

  lines returns() {
    return after([&](auto& out) { session_.on_callback_returned(now, out); });
  }
  lines throws() { return threw({"oops", false, true}); }
  lines throws_elsewhere() { return threw({"oops", false, false}); }
  lines throws_lease_gone() { return threw({"lease gone", true, true}); }
  lines throws_lease_gone_elsewhere() { return threw({"fenced", true, false}); }
  lines no_answer() {
    return after([&](auto& out) { session_.on_no_answer(now, out); });
  }
  lines checkpoint(session::waiter_id id,
                   const std::optional<sequence_position>& position = std::nullopt,
                   bool from_callback = true) {
    return after([&](auto& out) { session_.on_checkpoint(id, position, from_callback, now, out); });
  }
  lines deadline_passes(session::waiter_id id) {
    return after([&](auto& out) { was_waiting = session_.on_deadline(id, now, out); });
  }
  /// An async_checkpoint without a handler.
  lines async_checkpoint(const std::optional<sequence_position>& position = std::nullopt,
                         bool from_callback = true) {
    return after([&](auto& out) {
      session_.on_async_checkpoint(std::nullopt, position, from_callback, now, out);
    });
  }
  /// An async_checkpoint with a handler.
  lines async_checkpoint(session::waiter_id id, const std::optional<sequence_position>& position,
                         bool from_callback = true) {
    return after(
        [&](auto& out) { session_.on_async_checkpoint(id, position, from_callback, now, out); });
  }
  lines callback_lasts() {
    return after([&](auto& out) { session_.on_callback_lasts(now, out); });
  }
  /// Time passes until this timer fires.
  lines fires(session::timer which) {
    const auto& due = timers_.at(static_cast<std::size_t>(which));
    if (!due) return {"the timer is not armed"};
    now = std::max(now, *due);
    timers_[static_cast<std::size_t>(which)].reset();
    return after([&](auto& out) { session_.on_timer(which, now, out); });
  }

  [[nodiscard]] bool is_unanswered() const { return session_.unanswered().has_value(); }

  /// Initializes the shard, and lets the callback return.
  void open() {
    initialize();
    returns();
  }
  /// Opens the shard and begins a batch, whose callback does not return yet.
  void start_batch(std::string_view sequence_number) {
    open();
    records(sequence_number);
  }
  /// Opens the shard and plays a batch, whose callback returns.
  void process(std::string_view sequence_number) {
    start_batch(sequence_number);
    returns();
  }
  /// Ends the shard, and lets the callback return.
  void end_shard() {
    shard_ended();
    returns();
  }

  session::time_point now{std::chrono::hours(1)};
  bool was_waiting = false;
  /// The lines of the log so far.
  lines log;

 private:
  template <class Body>
  lines receive(const std::string& action, Body body) {
    return after([&](auto& out) {
      session_.on_message({action, std::move(body)}, record_batch(), now, out);
    });
  }

  lines threw(const session::session::failure& what) {
    return after([&](auto& out) { session_.on_threw(what, now, out); });
  }

  template <class Event>
  lines after(Event event) {
    session::outputs out;
    event(out);
    lines result;
    for (const session::output& output : out) {
      result.push_back(line_of(output));
      if (const auto* wrote = std::get_if<session::write_checkpoint>(&output)) {
        written_ = wrote->position;
        if (!wrote->position.is_number()) written_.reset();
      } else if (const auto* timer = std::get_if<session::arm_timer>(&output)) {
        timers_.at(static_cast<std::size_t>(timer->timer)) = now + timer->after;
      } else if (std::holds_alternative<session::log_line>(output)) {
        log.push_back(result.back());
      }
    }
    return result;
  }

  [[nodiscard]] std::string line_of(const session::output& output) const {
    std::ostringstream text;
    text << output;
    std::string line = text.str();
    const auto* timer = std::get_if<session::arm_timer>(&output);
    if (timer != nullptr && timer->timer == session::timer::retry &&
        timer->after >= retry_.initial_backoff / 2 &&
        timer->after <= std::max(retry_.initial_backoff, retry_.max_backoff)) {
      return "arm retry timer";
    }
    const auto backoff = line.find("; retrying after ");
    return backoff == std::string::npos ? line : line.substr(0, backoff) + "; retrying";
  }

  retry_options retry_;
  session::session session_;
  std::optional<sequence_position> written_;
  std::array<std::optional<session::time_point>, session::timer_count> timers_;
};

/// The outputs after an answer of ThrottlingException, when the checkpoint will be tried again.
inline session_dialogue::lines retrying(const std::string& position) {
  return {"log warning: the checkpoint at " + position + " failed: ThrottlingException; retrying",
          "arm retry timer"};
}

inline sequence_position at(std::string_view sequence_number, std::uint64_t sub = 0) {
  return sequence_position(sequence_number, sub);
}

inline bool mentions(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace kclxx::test
