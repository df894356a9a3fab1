// SPDX-License-Identifier: Apache-2.0
// What the session tells its driver to do. Outputs print, so that a test reads as a dialogue.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include <kclxx/record_batch.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>

#include "protocol/message.hpp"

namespace kclxx::session {

using protocol::action_kind;

/// Names a call of checkpointer::checkpoint, or of async_checkpoint with a handler.
using waiter_id = std::uint64_t;

/// Write a checkpoint line. SHARD_END means the null checkpoint of a finished shard.
struct write_checkpoint {
  sequence_position position;
};

/// Write the status line that ends the open action.
struct write_status {
  std::string action;                 // as the daemon named it
  std::optional<action_kind> kind{};  // of a known action
};

/// Run this callback, then call on_callback_returned or on_threw.
struct call {
  action_kind kind;
  record_batch batch{};                               // process_records
  std::string shard_id{};                             // initialize
  std::optional<sequence_position> start_position{};  // initialize
};

/// Tell the waiter its result.
struct notify_waiter {
  waiter_id waiter;
  std::error_code result;
};

enum class timer {
  retry,   ///< a checkpoint that failed is due again
  pace,    ///< a checkpoint that nobody waits for may be sent
  report,  ///< the end of the shard still waits for records: log it again
  grace,   ///< the process leaves whatever the callback does
  ended,   ///< the process leaves, since the input has ended behind lines that wait for their turn
};
inline constexpr std::size_t timer_count = 5;

/// Call on_timer after this time. Arming a timer again replaces it.
struct arm_timer {
  session::timer timer;
  std::chrono::milliseconds after;
};

struct log_line {
  /// Makes the message printable: it may have an exception's text, for instance.
  log_line(log_level severity, std::string_view message,
           std::optional<sequence_position> about = std::nullopt);

  log_level level;
  std::string text;
  std::optional<sequence_position> position;
};

/// From now on run no timer of the shard, and no callback except lease_lost.
struct end_calls {};

/// Request a stop through the shard's stop token.
struct request_stop {};

/// End the process with this status. This is the last output of a session.
struct leave {
  exit_status status;
};

using output = std::variant<write_checkpoint, write_status, call, notify_waiter, arm_timer,
                            log_line, end_calls, request_stop, leave>;
using outputs = std::vector<output>;

std::ostream& operator<<(std::ostream& out, const output& value);

}  // namespace kclxx::session
