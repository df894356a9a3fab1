// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/checkpointer.hpp"
#include "daemon_model/child_message.hpp"
#include "daemon_model/lease.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "tool/replay/options.hpp"
#include "tool/replay/summary.hpp"
#include "tool/transcript/line_summary.hpp"

namespace kclxx::replay {

/// What the transcript holds besides the daemon's lines: of one action the child's answers and the
/// daemon's answers to its checkpoints, and how far the recorded child came. They are compared with
/// what this child does, and recorded failures are handed out again. Pure; memory for one action.
class recording {
 public:
  recording(expectation expected, const std::optional<sequence_position>& start);

  // What is read from the transcript.
  void begin(protocol::action_kind kind, const std::optional<sequence_position>& largest);
  void on_child_line(std::string_view line, std::size_t line_number);
  void on_answer(const transcript::line_summary& line);

  // What this child does.
  /// The next answer that was recorded for this position in this action, if it was an error.
  std::optional<std::string> take_failure(const daemon_model::child_checkpoint& asked);
  /// An answer of ShutdownException was recorded and not handed out.
  [[nodiscard]] bool has_lost_lease() const noexcept;
  void compare(const daemon_model::child_message& said, std::string_view line,
               diagnostics& differences);
  void compare_final(const sequence_position& reached, std::size_t line_number,
                     diagnostics& differences) const;

 private:
  struct message {
    daemon_model::child_message content;
    std::size_t line_number;
  };
  struct answer {
    daemon_model::child_checkpoint asked;
    std::optional<std::string> error;
  };

  expectation expected_;
  daemon_model::lease lease_;
  daemon_model::shard_record_processor_checkpointer checkpointer_;
  std::deque<message> messages_;  // from the child, not yet compared
  std::deque<answer> answers_;    // of this action, not yet handed out
};

}  // namespace kclxx::replay
