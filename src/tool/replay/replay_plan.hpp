// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/lease.hpp"
#include "daemon_model/shard_consumer.hpp"
#include "tool/replay/fault_schedule.hpp"
#include "tool/replay/measurement.hpp"
#include "tool/replay/options.hpp"
#include "tool/replay/script.hpp"
#include "tool/replay/summary.hpp"
#include "tool/replay/verdict.hpp"
#include "tool/transcript/line_summary.hpp"

namespace kclxx::replay {

/// The line of the entry that was read last goes to the child. It is not read on before on_sent().
struct write_entry {};
struct write_line {
  std::string line;
};
struct close_input {};
struct kill_child {};
using effect = std::variant<write_entry, write_line, close_input, kill_child>;
using effects = std::vector<effect>;

/// What the child of a shard leaves to its successor when a fault has killed it.
struct legacy {
  summary so_far;
  fault_schedule faults;
  sequence_position persisted;
  std::chrono::steady_clock::time_point began;
};

/// Plays one shard's transcript against one child, as the daemon would: the plan, as a state
/// machine over the daemon model. The on_ functions report what the transcript holds and
/// what the child does, and append what is to be done.
///
/// 1. wants() returns what comes next. 2. One of the on_ functions is called. 3. Its effects are
/// carried out, in order.
///
/// Pure: no descriptor, thread or clock. Thread safety: none.
class replay_plan {
 public:
  using time = std::chrono::steady_clock::time_point;

  enum class want {
    entry,       ///< on_entry, on_end_of_transcript or on_damage
    child,       ///< what the child does, until deadline()
    sent,        ///< the same, but lines from the child stay unread
    pause,       ///< on_time, at deadline()
    child_exit,  ///< on_exit, at deadline() at the latest
    nothing,     ///< it is over
  };

  explicit replay_plan(const options& how);
  /// The transcript comes from its beginning again. What was persisted is not sent.
  replay_plan(const options& how, legacy from);
  replay_plan(const replay_plan&) = delete;
  replay_plan& operator=(const replay_plan&) = delete;

  [[nodiscard]] want wants() const noexcept;
  /// time::max() while only the transcript is waited for, which may take any time.
  [[nodiscard]] time deadline() const noexcept;
  /// Whether a line from the child may be brought while an entry is wanted, so that the time of
  /// its coming is known.
  [[nodiscard]] bool can_take_line() const noexcept { return !held_; }

  void on_entry(const transcript::summarized_entry& next, time now, effects& out);
  void on_end_of_transcript(time now, effects& out);
  /// The transcript cannot be read on; what came before is played to its end.
  void on_damage(std::size_t line_number, std::string what, time now, effects& out);
  void on_time(time now, effects& out);

  void on_sent(time now, effects& out);
  void on_input_broken(time now, effects& out);
  void on_child_line(std::string_view line, time now, effects& out);
  /// What the child has written before the line of a write_entry goes out; it comes as lines, too.
  void on_early_output(std::string_view text);
  void on_end_of_output(time now, effects& out);
  void on_timeout(time now, effects& out);
  /// How the child ended: its exit status, or the signal, with the other one 0.
  void on_exit(int status, int signal);

  [[nodiscard]] const summary& result() const noexcept { return verdict_.result(); }
  /// After on_exit: what a successor needs, if there is to be one. Leaves result() empty then.
  [[nodiscard]] std::optional<legacy> take_legacy();

 private:
  void proceed(time now, effects& out);
  void start(script::action next, time now, effects& out);
  void begin_shard(const script::action& first);
  void end_dialogue(time now, effects& out);
  void close(time now, effects& out);
  void meet_faults_after_line(time now, effects& out);
  void take_held_line(time now, effects& out);
  void take_child_line(std::string_view line, time now, effects& out);
  void handle(const daemon_model::daemon_events& all, std::string_view line, time now,
              effects& out);
  void on_answered(const daemon_model::answered& answer, std::string_view line, effects& out);
  void on_returned(time now, std::string_view line, effects& out);
  void on_lost_line(const std::string& line);
  void kill(time now, effects& out);
  [[nodiscard]] bool has_successor() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return consumer_ && consumer_->is_waiting(); }

  options how_;
  fault_schedule faults_;
  script script_;
  verdict verdict_;
  measurement measured_;
  std::optional<daemon_model::lease> lease_;
  std::optional<daemon_model::shard_consumer> consumer_;
  std::optional<std::string> recorded_failure_;  // of the checkpoint that is being answered
  bool was_killed_ = false;                      // by a fault

  enum class phase { playing, closing, waiting_for_exit, over } phase_ = phase::playing;
  script::action current_{protocol::action_kind::initialize, {}};
  bool is_sending_ = false;
  bool input_broke_ = false;
  bool is_paused_ = false;

  struct held_line {
    std::string text;
    time at;
  };
  std::optional<held_line> held_;

  time deadline_{};
  std::chrono::microseconds first_at_{};  // of the shard's first action
};

}  // namespace kclxx::replay
