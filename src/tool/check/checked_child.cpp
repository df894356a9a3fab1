// SPDX-License-Identifier: Apache-2.0
#include "tool/check/checked_child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "tool/process/interruption.hpp"
#include "tool/process/poll.hpp"

namespace kclxx::cli {

namespace {

using namespace std::chrono_literals;
using event_kind = child_dialogue::event_kind;

/// How often stderr is looked at while the dialogue waits: far less than what fills its pipe.
constexpr auto turn = 20ms;
constexpr std::size_t kept_of_stderr = 2000;
constexpr std::size_t most_ahead = 100'000;

int signal_number(check::signal_name name) {
  switch (name) {
    case check::signal_name::hangup:
      return SIGHUP;
    case check::signal_name::interrupt:
      return SIGINT;
    case check::signal_name::quit:
      return SIGQUIT;
    case check::signal_name::terminate:
      return SIGTERM;
  }
  return 0;
}

}  // namespace

checked_child::checked_child(const std::vector<std::string>& command,
                             std::chrono::milliseconds limit)
    : dialogue_(command, child_process::error_output::piped), limit_(limit) {
  const int error = dialogue_.process().error.get();
  ::fcntl(error, F_SETFL, ::fcntl(error, F_GETFL) | O_NONBLOCK);
}

child_dialogue::event checked_child::next(clock::time_point deadline) {
  for (;;) {
    const auto end = std::min(deadline, clock::now() + turn);
    const child_dialogue::event came = dialogue_.next(end);
    drain_error();
    if (came.what != event_kind::timed_out || end == deadline) return came;
  }
}

bool checked_child::send(std::string_view bytes) {
  dialogue_.send_bytes(std::string(bytes));
  const auto deadline = clock::now() + limit_;
  while (dialogue_.is_sending()) {
    const child_dialogue::event came = next(deadline);
    if (came.what == event_kind::sent) break;
    // One that floods us, and does not read, must not fill our memory.
    const bool floods = ahead_.size() >= most_ahead || clock::now() >= deadline;
    if (came.what != event_kind::line || floods) return false;
    ahead_.emplace_back(came.line);
  }
  return dialogue_.process().input.is_open();
}

check::read_result checked_child::next_line(std::chrono::milliseconds limit) {
  using kind = check::read_result::kind;
  if (!ahead_.empty()) {
    check::read_result first{kind::line, std::move(ahead_.front())};
    ahead_.pop_front();
    return first;
  }
  const auto deadline = clock::now() + limit;
  for (;;) {
    const child_dialogue::event came = next(deadline);
    switch (came.what) {
      case event_kind::line:
        return {kind::line, std::string(came.line)};
      case event_kind::end_of_output:
        output_ended_ = true;
        return {kind::end_of_output, {}};
      case event_kind::timed_out:
        return {kind::timed_out, std::string(dialogue_.unread())};
      case event_kind::sent:
      case event_kind::input_broken:  // its output tells more
        break;
    }
  }
}

void checked_child::abandon() {
  dialogue_.close_input();
  dialogue_.process().output.close();
  dialogue_.process().error.close();
  output_ended_ = true;
}

void checked_child::signal(check::signal_name which) {
  dialogue_.process().kill(signal_number(which));
}

std::optional<check::child_end> checked_child::wait_end(std::chrono::milliseconds limit) {
  const auto deadline = clock::now() + limit;
  while (!output_ended_) {
    const auto came = next(deadline).what;
    output_ended_ = came == event_kind::end_of_output;
    if (!output_ended_ && (came == event_kind::timed_out || clock::now() >= deadline)) {
      return std::nullopt;
    }
  }
  child_process& process = dialogue_.process();
  // Whoever holds stderr keeps the daemon waiting, also when the child itself has ended.
  while (process.error.is_open()) {
    pollfd readable[] = {{process.error.get(), POLLIN, 0}, {interruption_descriptor(), POLLIN, 0}};
    if (!poll_until(readable, deadline)) return std::nullopt;
    throw_if_interrupted();
    drain_error();
  }
  const auto how = process.wait_until(deadline);
  if (!how) return std::nullopt;
  return check::child_end{how->status, how->signal};
}

void checked_child::drain_error() {
  descriptor& error = dialogue_.process().error;
  std::array<char, 4096> bytes;
  while (error.is_open()) {
    const ssize_t n = ::read(error.get(), bytes.data(), bytes.size());
    if (n > 0) {
      error_text_.append(bytes.data(), static_cast<std::size_t>(n));
      if (error_text_.size() > 2 * kept_of_stderr) {
        error_text_.erase(0, error_text_.size() - kept_of_stderr);
      }
    } else if (n == 0) {
      error.close();
    } else if (errno != EINTR) {
      return;
    }
  }
}

std::string checked_child::error_text() {
  drain_error();
  if (error_text_.size() <= kept_of_stderr) return error_text_;
  // From the beginning of a line, if there is one.
  std::string text = error_text_.substr(error_text_.size() - kept_of_stderr);
  const std::size_t line = text.find('\n');
  return line + 1 < text.size() ? text.substr(line + 1) : text;
}

}  // namespace kclxx::cli
