// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/child_message.hpp"
#include "protocol/message.hpp"
#include "tool/replay/faults.hpp"
#include "tool/replay/summary.hpp"
#include "tool/transcript/line_summary.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::replay {

/// What the transcript holds besides the daemon's lines: of one action the child's answers and the
/// daemon's answers to its checkpoints. They are compared with what this child does, and recorded
/// failures are handed out again. Pure; memory for one action.
class recording {
 public:
  explicit recording(bool compares) : compares_(compares) {}

  // What is read from the transcript.
  void begin() { answers_.clear(); }
  void on_child_line(std::string_view line, std::size_t line_number);
  void on_answer(const transcript::line_summary& line);

  // What this child does.
  /// The next answer that was recorded for this position in this action, if it was an error.
  std::optional<std::string> take_failure(const daemon_model::child_checkpoint& asked);
  /// An answer of ShutdownException was recorded and not handed out.
  [[nodiscard]] bool has_lost_lease() const noexcept;
  void compare(const daemon_model::child_message& said, std::string_view line,
               diagnostics& differences);

 private:
  struct message {
    daemon_model::child_message content;
    std::size_t line_number;
  };
  struct answer {
    daemon_model::child_checkpoint asked;
    std::optional<std::string> error;
  };

  bool compares_;
  std::deque<message> messages_;  // from the child, not yet compared
  std::deque<answer> answers_;    // of this action, not yet handed out
};

/// What is played to a child: the daemon's actions, in the transcript's order, with those that a
/// fault adds. A fault that ends the dialogue leaves out the actions after it. A successor does not
/// get records that were persisted.
///
/// Thread safety: none. Lifetime: what it is made of outlives it. Blocking: as the transcript's
/// source. Errors: what the source throws.
class script {
 public:
  /// One action of the daemon.
  struct action {
    protocol::action_kind kind;
    std::string name;
    std::size_t line_number = 0;
    std::optional<std::chrono::microseconds> at{};
    transcript::line_summary content{};
    std::string_view recorded_line{};  // the transcript's line; valid until look_ahead()
    std::optional<std::string> own{};  // another line in its place
    bool is_injected = false;          // by a fault: nothing was recorded of it
    bool is_last = false;              // the end of input comes next, whatever the transcript has

    [[nodiscard]] std::string_view line() const noexcept { return own ? *own : recorded_line; }
  };

  /// `persisted`: for a successor, which gets no record up to there.
  script(const options& options, fault_schedule& faults, transcript::reader& transcript,
         std::optional<sequence_position> persisted);

  /// Reads on to the transcript's next action. What lies before it was recorded of the action that
  /// is played.
  void look_ahead();
  /// The transcript's next action. Precondition: look_ahead().
  [[nodiscard]] const std::optional<action>& ahead() const noexcept { return ahead_; }
  /// The next action, which is then the one that is played; std::nullopt at the end.
  /// Precondition: look_ahead().
  [[nodiscard]] std::optional<action> next();
  /// Why the transcript ends there, if something is wrong with it.
  [[nodiscard]] const std::optional<diagnostic>& damage() const noexcept { return damage_; }

  /// What was recorded. Precondition: next() has returned an action.
  [[nodiscard]] recording& recorded() noexcept { return *recorded_; }
  [[nodiscard]] const std::optional<transcript::entry>& recorded_exit() const noexcept {
    return recorded_exit_;
  }

 private:
  void read();
  void read_daemon_line(const transcript::entry& entry);
  void end_with(std::size_t line_number, std::string damage);
  /// Cuts the action to what a successor gets of it. False: nothing, since all of it was persisted,
  /// or it is an unknown action before the first record that the successor gets.
  [[nodiscard]] bool cut_to_successor(action& next);
  [[nodiscard]] std::optional<action> take_next();
  [[nodiscard]] action injected(protocol::action_kind kind, const std::string& name,
                                bool is_last) const;

  const options& options_;
  fault_schedule& faults_;
  transcript::reader& transcript_;
  transcript::line_summarizer summarizer_;
  std::optional<sequence_position> persisted_;  // until the first action that a successor gets
  std::optional<action> ahead_;                 // read, not yet played
  bool has_ended_ = false;
  std::optional<diagnostic> damage_;
  std::size_t line_number_ = 0;  // of the action that is played
  bool is_last_ = false;         // the action that is played: the end of input comes next
  std::optional<recording> recorded_;
  std::optional<transcript::entry> recorded_exit_;
};

}  // namespace kclxx::replay
