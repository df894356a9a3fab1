// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tool/lockstep/lockstep_daemon.hpp"
#include "tool/process/child_dialogue.hpp"

namespace kclxx::tool {

/// A process that is played the daemon, with the last part of its stderr.
class checked_process : public checked_child {
 public:
  /// `on_error` gets all of its stderr, in pieces. Errors: start_error.
  checked_process(const std::vector<std::string>& command, std::chrono::milliseconds limit,
                  child_dialogue::error_handler on_error = {});

  bool send(std::string_view bytes) override;
  bool answer(std::string_view bytes) override;
  bool wait_until_read() override;
  child_output next_line(std::chrono::milliseconds limit) override;
  void pause(std::chrono::milliseconds time) override;
  void close_input() override { dialogue_.close_input(); }
  void abandon() override;
  void signal(std::string_view name) override;
  std::optional<child_exit> wait_end(std::chrono::milliseconds limit) override;
  std::string error_text() override;

 private:
  using clock = child_dialogue::clock;

  void keep_error(std::string_view text);

  child_dialogue::error_handler on_error_;
  std::string error_text_;  // before the dialogue, which adds to it
  child_dialogue dialogue_;
  std::chrono::milliseconds limit_;
  std::deque<std::string> ahead_;  // lines that came while a line was sent
  bool output_ended_ = false;
};

}  // namespace kclxx::tool
