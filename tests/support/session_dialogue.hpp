// SPDX-License-Identifier: Apache-2.0
// Drives a session by hand, with verbs that read as a dialogue.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session/session.hpp"

namespace kclxx::test {

/// Every verb feeds one event and gives back what the session did, a line per action.
class session_dialogue {
 public:
  using lines = std::vector<std::string>;

  explicit session_dialogue(const run_options& options = {}, bool input_is_file = false)
      : session_(options, input_is_file) {}

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
  lines shard_ended() { return receive("shardEnded", protocol::shard_ended{}); }
  lines shutdown_requested() {
    return receive("shutdownRequested", protocol::shutdown_requested{});
  }
  lines unknown(const std::string& name) { return receive(name, protocol::unknown_action{}); }
  lines answer() { return receive("checkpoint", protocol::checkpoint_answer{}); }
  lines answer(const std::string& name) {
    return receive("checkpoint", protocol::checkpoint_answer{name});
  }
  lines end_of_input(bool unfinished_line = false) {
    return after([&](auto& out) { session_.on_end_of_input(unfinished_line, now, out); });
  }
  lines bad_line() {
    return after([&](auto& out) { session_.on_bad_line("bad line", out); });
  }
  lines broken_output() {
    return after([&](auto& out) { session_.on_output_broken("broken pipe", out); });
  }

  lines returns() {
    return after([&](auto& out) { session_.on_callback_returned(now, out); });
  }
  lines throws() {
    return after([&](auto& out) { session_.on_callback_threw("oops", now, out); });
  }
  lines checkpoint(session::waiter_id id,
                   const std::optional<sequence_position>& position = std::nullopt,
                   bool from_callback = true) {
    return after([&](auto& out) { session_.on_checkpoint(id, position, from_callback, now, out); });
  }
  lines deadline_passes(session::waiter_id id) {
    return after([&](auto& out) { was_waiting = session_.on_deadline(id, now, out); });
  }
  lines request(const std::optional<sequence_position>& position = std::nullopt) {
    return after([&](auto& out) { refusal = session_.on_request(position, now, out); });
  }
  std::error_code request_for_later(const sequence_position& position) {
    return session_.on_request_for_later(position);
  }
  lines callback_lasts() {
    return after([&](auto& out) { session_.on_callback_lasts(now, out); });
  }
  /// Time passes until the timer that was armed last fires.
  lines retry_timer_fires() {
    now += std::chrono::seconds(10);
    return after([&](auto& out) { session_.on_timer(session::timer::retry, now, out); });
  }
  lines grace_timer_fires() {
    return after([&](auto& out) { session_.on_timer(session::timer::grace, now, out); });
  }

  /// Opens the shard and one batch, whose callback is running then.
  void start_batch(std::string_view sequence_number) {
    initialize();
    returns();
    records(sequence_number);
  }

  session::time_point now{std::chrono::hours(1)};
  std::error_code refusal;
  bool was_waiting = false;
  /// All that was logged.
  lines log;

 private:
  template <class Body>
  lines receive(const std::string& action, Body body) {
    return after([&](auto& out) {
      session_.on_message({action, std::move(body)}, record_batch(), now, out);
    });
  }

  template <class Event>
  lines after(Event event) {
    session::actions out;
    event(out);
    lines result;
    for (const session::action& one : out) {
      std::ostringstream text;
      text << one;
      if (std::holds_alternative<session::log_line>(one)) {
        log.push_back(text.str());
      } else if (!std::holds_alternative<session::arm_timer>(one)) {
        result.push_back(text.str());
      } else {
        armed.push_back(text.str());
      }
    }
    return result;
  }

 public:
  lines armed;

 private:
  session::session session_;
};

inline run_options by_request() {
  run_options options;
  options.complete = complete_when::by_request;
  return options;
}

inline sequence_position at(std::string_view sequence_number, std::uint64_t sub = 0) {
  return sequence_position(sequence_number, sub);
}

inline bool mentions(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace kclxx::test
