// SPDX-License-Identifier: Apache-2.0
// What the session tells its surroundings to do. Actions print and compare, so that a test reads
// as a dialogue.
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

/// Names one call of checkpointer::checkpoint, or one async_checkpoint with a handler.
using waiter_id = std::uint64_t;

/// Write a checkpoint line. SHARD_END means the null checkpoint of a finished shard.
struct write_checkpoint {
  sequence_position position;
};

/// Write the status line that ends the open action.
struct write_status {
  std::string action;
};

/// Run this callback, then report callback_returned or callback_threw.
struct call {
  action_kind what;
  record_batch batch{};                               // process_records
  std::string shard_id{};                             // initialize
  std::optional<sequence_position> start_position{};  // initialize
};

/// Give the waiter its result.
struct complete {
  waiter_id waiter;
  std::error_code result;
};

enum class timer {
  retry,   ///< a checkpoint that failed is due again
  pace,    ///< a checkpoint that nobody waits for may be sent
  report,  ///< the end of the shard still waits for records: log it again
  grace,   ///< the process leaves whatever the callback does
};
inline constexpr std::size_t timer_count = 4;

/// Report timer_fired after this time. Arming a timer again replaces it.
struct arm_timer {
  timer which;
  std::chrono::milliseconds after;
};

struct log_line {
  /// One line, whatever is in the text, an exception's what() for instance: control characters are
  /// escaped as in C.
  log_line(log_level severity, std::string_view message,
           std::optional<sequence_position> about = std::nullopt);

  log_level level;
  std::string text;
  std::optional<sequence_position> position;
};

/// Deliver no more messages until resume_reading; the end of input must still be noticed.
struct pause_reading {};
struct resume_reading {};

/// Fire the shard's stop token.
struct request_stop {};

/// End the process with this status. Comes once, last.
struct leave {
  exit_status status;
};

using action = std::variant<write_checkpoint, write_status, call, complete, arm_timer, log_line,
                            pause_reading, resume_reading, request_stop, leave>;
using actions = std::vector<action>;

std::ostream& operator<<(std::ostream& out, const action& what);
const char* to_string(timer value) noexcept;

}  // namespace kclxx::session
