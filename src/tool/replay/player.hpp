// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/lines.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "protocol/message.hpp"
#include "tool/process/dialogue.hpp"
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
    /// By a fault: nothing was recorded of it, and the end of input comes next.
    bool is_injected = false;

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
  [[nodiscard]] action injected(protocol::action_kind kind) const;

  const options& options_;
  fault_schedule& faults_;
  transcript::reader& transcript_;
  transcript::line_summarizer summarizer_;
  std::optional<sequence_position> persisted_;  // until the first action that a successor gets
  std::optional<action> ahead_;                 // read, not yet played
  bool has_ended_ = false;
  std::optional<diagnostic> damage_;
  std::size_t line_number_ = 0;  // of the action that is played
  bool is_last_ = false;         // the action that is played was injected
  std::optional<recording> recorded_;
  std::optional<transcript::entry> recorded_exit_;
};

/// What lasts while the children of a shard succeed each other.
struct shard_play {
  explicit shard_play(const options& options) : faults(options.faults) {}
  shard_play(const shard_play&) = delete;
  shard_play& operator=(const shard_play&) = delete;

  summary result;
  fault_schedule faults;
  /// When the first action was begun.
  std::optional<std::chrono::steady_clock::time_point> began{};
  /// Where the successor of a child that a fault has killed begins, after this one.
  std::optional<sequence_position> successor_begins{};
};

/// Plays one shard's transcript against one child, as the daemon would.
///
/// Each action's line goes out when the one before has its status. While it is written, the
/// child's lines are read. While an answer is written, they are not: the daemon does the same.
/// Thread safety: none. Lifetime: what it is made of outlives it.
class player {
 public:
  using time = tool::dialogue::clock::time_point;

  /// Begins a successor when the shard's state has one.
  player(const options& options, shard_play& shard, transcript::reader& transcript,
         tool::dialogue& child);
  player(const player&) = delete;
  player& operator=(const player&) = delete;

  /// Plays the next action. False: the dialogue is over, and finish() is to be called.
  /// Blocking: for the transcript's source, then at most until the time limit.
  /// Errors: what the source and the dialogue throw.
  bool play_next();
  /// Waits for the child's end, and concludes.
  void finish();

 private:
  enum class phase { playing, closing, killed };

  void begin_shard(const script::action& first);
  [[nodiscard]] bool prepare_action(const script::action& next);
  void begin(script::action next);
  void look_ahead();
  void take_event();
  void on_sent(time now);
  void on_line(const std::string& line, time now);
  [[nodiscard]] bool prepare_message(const daemon_model::child_message& message,
                                     const std::string& line, time now);
  void on_end_of_output();
  [[nodiscard]] bool await_sent();
  void handle(const daemon_model::daemon_events& all, const std::string& line, time now);
  void on_answered(const daemon_model::answered& answer, const std::string& line);
  void on_returned(const std::string& line, time now);
  void on_lost_line(const std::string& line);
  void on_worker_ended(const std::string& reason, const std::string& line);
  void add_span(std::chrono::nanoseconds callback, time now);
  void end_dialogue();
  void close();
  void breach(std::string message, std::string_view line);
  void damage(std::size_t transcript_line, std::string message);
  void blame(std::string reason);
  void fail(std::string reason);
  void kill_by_fault();
  void kill();
  void drain();
  void judge_exit(const tool::child_exit& exit);
  void conclude(const tool::child_exit& exit);
  /// A child that was killed, or whose dialogue a fault ended, is not blamed for what follows.
  [[nodiscard]] bool is_end_explained() const noexcept { return is_deliberate_ || worker_ended_; }
  [[nodiscard]] bool is_open() const noexcept { return consumer_ && consumer_->is_waiting(); }
  [[nodiscard]] std::string no_status(std::string_view unfinished) const;
  [[nodiscard]] std::string not_read() const;
  [[nodiscard]] std::string within_limit() const;

  const options& options_;
  shard_play& shard_;
  tool::dialogue& child_;
  script script_;
  std::optional<daemon_model::lease> lease_;
  std::optional<daemon_model::shard_consumer> consumer_;
  std::optional<std::string> recorded_failure_;  // of the checkpoint that is being answered

  phase phase_ = phase::playing;
  script::action current_{protocol::action_kind::initialize, {}};
  bool is_sending_ = false;  // its line
  bool input_broke_ = false;
  bool is_deliberate_ = false;  // a fault ended the dialogue: how the child leaves is no failure
  bool worker_ended_ = false;
  bool output_ended_ = false;
  bool was_killed_ = false;
  bool was_killed_by_fault_ = false;
  time began_{};     // the current action
  time sent_at_{};   // its line
  time deadline_{};  // of its status
};

}  // namespace kclxx::replay
