// SPDX-License-Identifier: Apache-2.0
#include "driver/file_dialogue.hpp"

#include <utility>

namespace kclxx::driver {

bool file_dialogue::is_full() const noexcept {
  return held_ || (driver_.is_open() && !driver_.unanswered());
}

void file_dialogue::on_line(line_decoder::outcome line) {
  auto* const decoded = std::get_if<line_decoder::decoded>(&line);
  if (decoded == nullptr) return driver_.on_line(std::move(line));
  auto* const answer = std::get_if<protocol::checkpoint_answer>(&decoded->message.body);
  if (answer == nullptr) return pass_on(std::move(*decoded));
  const auto& asked = driver_.unanswered();
  if (!asked) {
    driver_.on_log(log_level::info, "skipped an answer to a checkpoint that was not asked for");
    return;
  }
  answer->position = asked->is_number() ? asked : std::nullopt;
  driver_.on_line(std::move(line));
}

/// An action, or the end.
void file_dialogue::pass_on(next_part part) {
  while (driver_.is_open() && driver_.unanswered() && !driver_.status()) driver_.on_no_answer();
  const bool is_end = std::holds_alternative<end>(part);
  // What is missing to the end of a shard does not come any more.
  if (driver_.is_open() && !(is_end && driver_.awaits_completion())) {
    held_ = std::move(part);
  } else if (is_end) {
    driver_.on_end_of_input(false);
  } else {
    driver_.on_line(std::move(std::get<line_decoder::decoded>(part)));
  }
}

void file_dialogue::resume() {
  if (held_) pass_on(*std::exchange(held_, std::nullopt));
}

}  // namespace kclxx::driver
