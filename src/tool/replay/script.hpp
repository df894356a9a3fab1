// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

#include "protocol/message.hpp"
#include "tool/replay/fault_schedule.hpp"
#include "tool/replay/options.hpp"
#include "tool/replay/recording.hpp"
#include "tool/transcript/entry.hpp"
#include "tool/transcript/line_summary.hpp"

namespace kclxx::replay {

/// What is to be played to a child: the transcript's actions of the daemon in their order, with
/// what faults put before them, and without what was persisted; and what was recorded of each.
/// The transcript is read one action ahead: what the daemon answered, and what the child wrote
/// when it was recorded, follows an action's line.
///
/// Pure. Thread safety: none. Lifetime: `how` and `faults` outlive it.
class script {
 public:
  /// One action of the daemon.
  struct action {
    protocol::action_kind what;
    std::string name;
    std::size_t line_number = 0;
    std::optional<std::chrono::microseconds> at{};
    transcript::line_summary content{};
    std::size_t size = 0;              // of the line, with its newline
    std::optional<std::string> own{};  // the line, when it is none of the transcript
    bool is_last = false;              // the end of input comes next, whatever the transcript has

    void use_own_line(std::string line);
  };

  /// `persisted`: of a successor, which does not get again what is up to there.
  script(const options& how, fault_schedule& faults,
         std::optional<sequence_position> persisted = {});

  /// What is wrong with the entry, if anything; it cannot be played then.
  [[nodiscard]] std::optional<std::string> read(const transcript::summarized_entry& next);
  void end() noexcept { has_ended_ = true; }
  /// Whether it is known what comes next. Until then entries are to be read.
  [[nodiscard]] bool is_looked_ahead() const noexcept { return ahead_ || has_ended_; }
  /// The transcript's next action.
  [[nodiscard]] const std::optional<action>& ahead() const noexcept { return ahead_; }

  /// The next action, which is then the one that is played; std::nullopt at the end.
  [[nodiscard]] std::optional<action> next();
  /// What was recorded. Precondition: next() has returned an action.
  [[nodiscard]] recording& recorded() noexcept { return *recorded_; }
  [[nodiscard]] const std::optional<transcript::entry>& recorded_exit() const noexcept {
    return recorded_exit_;
  }

 private:
  [[nodiscard]] std::optional<std::string> read_daemon_line(
      const transcript::summarized_entry& from);
  /// False when all of it was persisted.
  [[nodiscard]] bool leave_out_persisted(std::string_view line, action& next);
  [[nodiscard]] std::optional<action> take_next();
  [[nodiscard]] action injected(protocol::action_kind what, std::string name, bool is_last) const;

  const options& how_;
  fault_schedule& faults_;
  std::optional<sequence_position> persisted_;  // until something comes that was not
  std::optional<action> ahead_;                 // read, not yet played
  bool has_ended_ = false;
  std::size_t line_number_ = 0;  // of the action that is played
  bool is_last_ = false;         // that action
  std::optional<recording> recorded_;
  std::optional<transcript::entry> recorded_exit_;
};

}  // namespace kclxx::replay
