// SPDX-License-Identifier: Apache-2.0
#include "driver/file_dialogue.hpp"

#include <utility>

namespace kclxx::driver {

bool file_dialogue::is_full() const noexcept {
  return action_ || has_ended_ || (driver_.is_open() && !driver_.unanswered());
}

void file_dialogue::on_line(line_decoder::outcome line) {
  auto* const decoded = std::get_if<line_decoder::decoded>(&line);
  if (decoded == nullptr) return driver_.on_line(std::move(line));
  auto* const answer = std::get_if<protocol::checkpoint_answer>(&decoded->message.body);
  if (answer == nullptr) {
    action_ = std::move(*decoded);
    return pass_on();
  }
  const auto& asked = driver_.unanswered();
  if (!asked) {
    driver_.on_log(log_level::info, "skipped an answer to a checkpoint that was not asked for");
    return;
  }
  answer->position = asked->is_number() ? asked : std::nullopt;
  driver_.on_line(std::move(line));
}

void file_dialogue::on_end() {
  has_ended_ = true;
  pass_on();
}

/// Hands over the action, or else the end, if it is due.
void file_dialogue::pass_on() {
  if (!action_ && !has_ended_) return;
  while (driver_.is_open() && driver_.unanswered() && !driver_.status()) driver_.on_no_answer();
  // What is missing to the end of a shard does not come any more.
  const bool is_end = !action_ && driver_.awaits_completion();
  if (driver_.is_open() && !is_end) return;
  if (action_) return driver_.on_line(*std::exchange(action_, std::nullopt));
  has_ended_ = false;
  driver_.on_end_of_input(false);
}

}  // namespace kclxx::driver
