// SPDX-License-Identifier: Apache-2.0
#include "tool/lockstep/checked_process.hpp"

#include <csignal>
#include <utility>

namespace kclxx::tool {

namespace {

using event_kind = child_dialogue::event_kind;

constexpr std::size_t kept_of_stderr = 2000;
constexpr std::size_t most_ahead = 100'000;

}  // namespace

checked_process::checked_process(const std::vector<std::string>& command,
                                 std::chrono::milliseconds limit,
                                 child_dialogue::error_handler on_error)
    : on_error_(std::move(on_error)),
      dialogue_(command, [this](std::string_view text) { keep_error(text); }),
      limit_(limit) {}

void checked_process::keep_error(std::string_view text) {
  if (on_error_) on_error_(text);
  error_text_.append(text);
  if (error_text_.size() > 2 * kept_of_stderr) {
    error_text_.erase(0, error_text_.size() - kept_of_stderr);
  }
}

bool checked_process::send(std::string_view bytes) {
  if (dialogue_.is_sending()) return false;  // an answer that it does not read
  dialogue_.send_bytes(std::string(bytes));
  const auto deadline = clock::now() + limit_;
  while (dialogue_.is_sending()) {
    const child_dialogue::event event = dialogue_.next(deadline);
    if (event.what == event_kind::sent) break;
    // One that floods us, and does not read, must not fill our memory.
    const bool floods = ahead_.size() >= most_ahead || clock::now() >= deadline;
    if (event.what != event_kind::line || floods) return false;
    ahead_.emplace_back(event.line);
  }
  return dialogue_.is_input_open();
}

bool checked_process::answer(std::string_view bytes) {
  if (dialogue_.is_sending()) return false;
  dialogue_.send_bytes(std::string(bytes));
  const auto deadline = clock::now() + limit_;
  while (dialogue_.is_sending()) {
    const auto event = dialogue_.next(deadline, child_dialogue::output::stays_unread);
    if (event.what == event_kind::timed_out) return false;
  }
  return true;
}

bool checked_process::wait_until_read() {
  const auto deadline = clock::now() + limit_;
  while (!dialogue_.is_all_read()) {
    if (clock::now() >= deadline) return false;
    pause(std::chrono::milliseconds(1));
  }
  return true;
}

child_output checked_process::next_line(std::chrono::milliseconds limit) {
  using kind = child_output::kind;
  if (!ahead_.empty()) {
    child_output first{kind::line, std::move(ahead_.front())};
    ahead_.pop_front();
    return first;
  }
  const auto deadline = clock::now() + limit;
  for (;;) {
    const child_dialogue::event event = dialogue_.next(deadline);
    switch (event.what) {
      case event_kind::line:
        return {kind::line, std::string(event.line)};
      case event_kind::end_of_output:
        output_ended_ = true;
        return {kind::end_of_output, {}};
      case event_kind::timed_out:
        return {kind::timed_out, std::string(dialogue_.unread())};
      case event_kind::sent:
      case event_kind::input_broken:  // its output has more
        break;
    }
  }
}

void checked_process::pause(std::chrono::milliseconds time) {
  const auto deadline = clock::now() + time;
  while (clock::now() < deadline) dialogue_.loop().run_one(deadline);
}

void checked_process::abandon() {
  dialogue_.close_input();
  dialogue_.close_output();
  dialogue_.close_error();
  output_ended_ = true;
}

void checked_process::signal(std::string_view name) {
  dialogue_.kill(name == "SIGHUP"    ? SIGHUP
                 : name == "SIGINT"  ? SIGINT
                 : name == "SIGQUIT" ? SIGQUIT
                                     : SIGTERM);
}

std::optional<child_exit> checked_process::wait_end(std::chrono::milliseconds limit) {
  const auto deadline = clock::now() + limit;
  while (!output_ended_) {
    const auto event = dialogue_.next(deadline).what;
    output_ended_ = event == event_kind::end_of_output;
    if (!output_ended_ && (event == event_kind::timed_out || clock::now() >= deadline)) {
      return std::nullopt;
    }
  }
  return dialogue_.wait_exit(deadline);
}

std::string checked_process::error_text() {
  while (dialogue_.loop().run_one({})) {
  }
  if (error_text_.size() <= kept_of_stderr) return error_text_;
  // From the beginning of a line, if there is one.
  std::string text = error_text_.substr(error_text_.size() - kept_of_stderr);
  const std::size_t line = text.find('\n');
  return line + 1 < text.size() ? text.substr(line + 1) : text;
}

}  // namespace kclxx::tool
