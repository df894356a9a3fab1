// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tool/replay/summary.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::replay {

/// What a shard's replay finds wrong, and what explains it: a child that was killed, or whose
/// dialogue a fault ended, is not blamed for what follows from that.
///
/// Pure. Thread safety: none. Lifetime: the summary outlives it.
class verdict {
 public:
  explicit verdict(summary& result) : summary_(result) {}

  /// The action that what follows is about.
  void begin_action(std::size_t transcript_line) noexcept { line_ = transcript_line; }

  void breach(std::string message, std::string_view child_line = {});
  /// The transcript is wrong; the first time counts.
  void damage(std::size_t transcript_line, std::string message);
  /// The child failed; the first time counts.
  void fail(std::string reason);
  /// Nobody reads this line of the child.
  void on_lost_line(std::string_view line);
  /// The daemon would end its worker.
  void on_worker_ended(const std::string& reason, std::string_view child_line);

  /// A fault ended the dialogue: how the child leaves is no failure.
  void on_deliberate_end() noexcept { is_deliberate_ = true; }
  [[nodiscard]] bool is_end_explained() const noexcept { return is_deliberate_ || worker_ended_; }
  void on_end_of_output() noexcept { output_ended_ = true; }
  [[nodiscard]] bool has_output_ended() const noexcept { return output_ended_; }
  void on_kill() noexcept { was_killed_ = true; }
  void on_exit(int status, int signal);
  /// With what was recorded: transcript::entry_kind::exit or killed.
  void compare_exit(int status, int signal, const transcript::entry& recorded);

 private:
  summary& summary_;
  std::size_t line_ = 0;
  bool is_deliberate_ = false;
  bool worker_ended_ = false;
  bool output_ended_ = false;
  bool was_killed_ = false;
};

}  // namespace kclxx::replay
