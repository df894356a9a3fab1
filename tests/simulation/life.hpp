// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <kclxx/run.hpp>

#include "daemon_model/shard_consumer.hpp"
#include "protocol/decoder.hpp"
#include "session/session.hpp"
#include "simulation/processor.hpp"
#include "simulation/random.hpp"
#include "simulation/world.hpp"

namespace kclxx::simulation {

/// What happened, for a run that failed; nothing is kept unless it is wanted.
class journal {
 public:
  explicit journal(bool wanted) : wanted_(wanted) {}
  template <class Text>
  void note(Text text) {
    if (wanted_) lines.push_back(text());
  }
  std::vector<std::string> lines;

 private:
  bool wanted_;
};

/// One child process under one daemon, from its start to its end: the session, the model of the
/// daemon, a random processor, the pipes between them, and a clock. Every step is one event,
/// chosen at random among those that could come next. Knows the invariants about the dialogue.
class life {
 public:
  life(world& in, random_source& random, bool with_faults, journal& log);

  void run();

  /// Steps taken, over all; the runner prints them.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  enum class event {
    daemon_calls,
    daemon_dies,
    worker_stops,
    lease_is_stolen,
    child_reads,
    child_killed,
    daemon_reads,
    callback_steps,
    callback_lasts,
    thread_steps,
    timer_fires,
  };
  struct choice {
    event what;
    unsigned weight;
  };

  // The daemon's side.
  void call_something();
  void call(daemon_model::call_kind what, const std::string& line, const std::string& action,
            const std::optional<sequence_position>& largest);
  void daemon_reads();
  void daemon_sees_end();
  void take(const daemon_model::happenings& happened);
  void take(const daemon_model::answered& answer);
  void end_child_input(bool unfinished_line);

  // The child's side.
  void child_reads();
  void child_is_gone();
  template <class Event>
  void feed(Event one) {
    session::actions decided;
    one(decided);
    carry_out(decided);
  }
  void carry_out(session::actions& decided);
  void carry_out(session::action& one);
  void write(const std::string& text);
  void fire_timer();

  [[nodiscard]] std::vector<choice> choices() const;
  void perform(event what);
  [[nodiscard]] bool is_over() const { return child_gone_ && daemon_gone_; }
  void check_stuck();
  void check_end() const;

  world& world_;
  random_source& random_;
  bool with_faults_;
  journal& log_;
  std::uint64_t steps_ = 0;

  daemon_model::lease lease_;
  daemon_model::shard_consumer consumer_;
  std::size_t delivered_;  // records handed over by the daemon
  bool daemon_gone_ = false;
  bool unknown_sent_ = false;

  std::deque<std::string> to_child_;
  std::deque<std::string> to_daemon_;
  bool input_ended_ = false;
  bool unfinished_line_ = false;
  bool child_has_seen_end_ = false;
  bool daemon_has_seen_end_ = false;

  protocol::decoder decoder_;
  session::session session_;
  session::time_point now_{std::chrono::hours(1)};
  std::array<std::optional<session::time_point>, 2> timers_;
  bool is_paused_ = false;
  bool child_gone_ = false;
  bool was_killed_ = false;
  bool stop_fired_ = false;
  bool may_write_ = false;  // an action is open that the child has not answered
  bool output_broken_ = false;
  int unanswered_ = 0;
  std::optional<exit_status> left_with_;
  processor processor_;
};

}  // namespace kclxx::simulation
