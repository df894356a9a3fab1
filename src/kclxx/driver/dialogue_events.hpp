// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/observer.hpp>

#include "session/session.hpp"

namespace kclxx::driver {

class host;

/// Sends the host what happens in the dialogue, for observers. Does nothing when there are none.
///
/// Thread safety: none; belongs to a session_driver.
class dialogue_events {
 public:
  explicit dialogue_events(host& owner) : host_(owner) {}

  /// A call is handed over: made before, since the call is moved away, and sent after.
  [[nodiscard]] std::optional<observer::shard_event> event_of(const session::call& call) const;
  void on_call(std::optional<observer::shard_event> event, observer::callback_kind kind);
  void on_callback_ended(std::chrono::nanoseconds duration,
                         observer::callback_ended::outcome outcome, std::string error);
  void on_status(const std::optional<session::action_kind>& kind, const session::session& session);
  void on_checkpoint(const sequence_position& position, session::session& session);
  /// The session may have an answer, or wait for none any more.
  void settle(session::session& session);
  void on_left(exit_status status, session::session& session);

 private:
  struct request {
    sequence_position position;
    session::time_point time;
  };

  void send_answer(session::session& session);

  host& host_;
  std::optional<observer::callback_kind> open_;
  std::optional<request> unanswered_;
};

}  // namespace kclxx::driver
