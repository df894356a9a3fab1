// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

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

/// What the transcript has of the action that is played: the messages of the child that was
/// recorded, and the daemon's answers to its checkpoints. The messages are compared with those of
/// the child that plays, and the errors are answered again. Pure. Memory: that of one action.
class recording {
 public:
  explicit recording(bool compares) : compares_(compares) {}

  // For what is read from the transcript.
  void begin() { answers_.clear(); }
  void on_child_line(std::string_view line, std::size_t line_number);
  void on_answer(const transcript::line_summary& line);

  // For what the child does that plays.
  /// Takes the next answer that was recorded for this position: its error, or std::nullopt.
  std::optional<std::string> take_failure(const daemon_model::child_checkpoint& asked);
  /// Whether an answer of ShutdownException was recorded, and not taken.
  [[nodiscard]] bool has_lost_lease() const noexcept;
  void compare(const daemon_model::child_message& message, std::string_view line,
               diagnostics& differences);

 private:
  struct recorded_message {
    daemon_model::child_message content;
    std::size_t line_number;
  };
  struct recorded_answer {
    daemon_model::child_checkpoint asked;
    std::optional<std::string> error;
  };

  bool compares_;
  std::deque<recorded_message> messages_;  ///< those that were not compared yet
  std::deque<recorded_answer> answers_;    ///< those of this action that were not taken yet
};

/// What is played to a child: the daemon's actions, in the transcript's order, with those that a
/// fault adds. A fault that ends the dialogue leaves out the actions after it. A successor does not
/// get records that were persisted.
///
/// Thread safety: none. Lifetime: what it is made of outlives it. Blocking: until the transcript's
/// source has bytes. Errors: what the source throws.
class script {
 public:
  /// One action of the daemon.
  struct action {
    protocol::action_kind kind;
    std::string name;
    std::size_t line_number = 0;
    transcript::line_summary content{};
    std::string_view recorded_line{};          ///< the transcript's line; valid until look_ahead()
    std::optional<std::string> replacement{};  ///< the line that is sent in its place
    /// A fault has added it: the transcript has nothing of it, and the end of input follows.
    bool is_injected = false;

    [[nodiscard]] std::string_view line() const noexcept {
      return replacement ? *replacement : recorded_line;
    }
  };

  /// `persisted`: the position after which a successor begins; std::nullopt for the first child.
  script(const options& options, fault_schedule& faults, transcript::reader& transcript,
         std::optional<sequence_position> persisted);

  /// Reads on to the transcript's next action. What lies before it belongs to the action that is
  /// played, and goes into recorded().
  void look_ahead();
  /// The transcript's next action. Precondition: look_ahead().
  [[nodiscard]] const std::optional<action>& ahead() const noexcept { return ahead_; }
  /// Begins the next action: it is then the action that is played. std::nullopt at the end.
  /// Precondition: look_ahead().
  [[nodiscard]] std::optional<action> next();
  /// Why the transcript ends there, if something is wrong with it.
  [[nodiscard]] const std::optional<diagnostic>& damage() const noexcept { return damage_; }

  /// What was recorded of the action that is played. Precondition: next() has returned an action.
  [[nodiscard]] recording& recorded() noexcept { return *recorded_; }
  [[nodiscard]] const std::optional<transcript::entry>& recorded_exit() const noexcept {
    return recorded_exit_;
  }

 private:
  void read();
  void read_daemon_line(const transcript::entry& entry);
  void end_with(std::size_t line_number, std::string damage);
  /// Cuts the action to what a successor gets of it. False: the successor gets nothing of it, since
  /// it was persisted, or is an unknown action before the first record that the successor gets.
  [[nodiscard]] bool cut_to_successor(action& next);
  [[nodiscard]] std::optional<action> take_next();
  [[nodiscard]] action injected(protocol::action_kind kind) const;

  const options& options_;
  fault_schedule& faults_;
  transcript::reader& transcript_;
  transcript::line_summarizer summarizer_;
  /// Where a successor begins. It is empty from the first records that a child gets.
  std::optional<sequence_position> persisted_;
  std::optional<action> ahead_;  ///< the action that was read and is not played yet
  bool has_ended_ = false;
  std::optional<diagnostic> damage_;
  std::size_t line_number_ = 0;  ///< of the action that is played
  bool plays_injected_ = false;  ///< a fault has added the action that is played
  std::optional<recording> recorded_;
  std::optional<transcript::entry> recorded_exit_;
};

/// What a child of a shard leaves to its successors.
struct shard_play {
  explicit shard_play(const options& options) : faults(options.faults) {}
  shard_play(const shard_play&) = delete;
  shard_play& operator=(const shard_play&) = delete;

  summary result;
  fault_schedule faults;
  /// When the first action of the first child began.
  std::optional<std::chrono::steady_clock::time_point> first_action_began{};
  /// Set when a fault has killed the child: the successor begins after this position.
  std::optional<sequence_position> successor_begins{};
};

/// Plays one shard's transcript against one child, as the daemon would.
///
/// The line of an action goes out when the action before it has its status. While a line is
/// written, the child's lines are read. While an answer is written, they are not (P39).
/// Thread safety: none. Lifetime: what it is made of outlives it.
class player {
 public:
  using time = tool::dialogue::clock::time_point;

  /// Begins a successor if shard.successor_begins is set.
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
  void handle(const daemon_model::daemon_events& events, const std::string& line, time now);
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
  /// A child whose dialogue was ended by a fault, or by the daemon, is not blamed for what follows.
  [[nodiscard]] bool is_end_explained() const noexcept { return ended_by_fault_ || worker_ended_; }
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
  /// The error that was recorded for the checkpoint that is being answered.
  std::optional<std::string> recorded_failure_;

  phase phase_ = phase::playing;
  script::action current_{protocol::action_kind::initialize, {}};
  bool is_sending_ = false;  ///< the line of the current action is not all in the pipe
  bool input_broke_ = false;
  bool ended_by_fault_ = false;  ///< a fault ended the dialogue, or killed the child
  bool worker_ended_ = false;
  bool output_ended_ = false;
  bool was_killed_ = false;
  bool was_killed_by_fault_ = false;
  time action_began_{};
  time line_sent_{};
  time status_deadline_{};
};

}  // namespace kclxx::replay
