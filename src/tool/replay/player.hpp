// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/child_message.hpp"
#include "daemon_model/lease.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "tool/process/dialogue.hpp"
#include "tool/replay/faults.hpp"
#include "tool/replay/script.hpp"
#include "tool/replay/summary.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::replay {

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
