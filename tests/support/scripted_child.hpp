// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tool/process/dialogue.hpp"

namespace kclxx::test {

inline std::string action_of(const std::string& line) {
  const std::size_t begin = line.find(R"("action":")") + 10;
  return line.substr(begin, line.find('"', begin) - begin);
}
inline std::string status_for(const std::string& action) {
  return R"({"action":"status","responseFor":")" + action + R"("})";
}
inline const std::string null_checkpoint =
    R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})";

/// A child without a process: the test says what it does with a line. Time passes only while the
/// test's subject waits.
class scripted_child : public tool::dialogue {
 public:
  using time_point = clock::time_point;
  struct written_line {
    std::string text;
    std::chrono::nanoseconds delay{};  ///< since the line before
  };
  /// What the child does with a line: what it writes once it has read it, how long it takes to read
  /// it, and what it writes meanwhile.
  struct reaction {
    std::vector<written_line> lines;
    std::chrono::nanoseconds read_time{};
    std::vector<written_line> lines_while_reading{};
  };
  using reaction_to_line = std::function<reaction(const std::string& line)>;

  explicit scripted_child(reaction_to_line react = obliging) : react_(std::move(react)) {}

  /// Writes the status of each action at once.
  static reaction obliging(const std::string& line) {
    const std::string action = action_of(line);
    return action == "checkpoint" ? reaction{} : reaction{{{status_for(action)}}};
  }
  /// The next line with this action gets this reaction.
  void on(const std::string& action, reaction planned) {
    planned_[action].push_back(std::move(planned));
  }

  [[nodiscard]] time_point now() const noexcept override { return now_; }
  void send(std::string_view text, std::string_view) override {
    steps_.emplace_back(text);
    auto& planned = planned_[action_of(steps_.back())];
    if (planned.empty()) {
      current_ = react_(steps_.back());
    } else {
      current_ = std::move(planned.front());
      planned.pop_front();
    }
    read_at_ = now_ + current_.read_time;
    say(current_.lines_while_reading);
  }
  event next(time_point deadline, output child_lines) override {
    const bool has_line = child_lines == output::is_read && !output_.empty();
    time_point next_event = deadline;
    if (read_at_) next_event = std::min(next_event, *read_at_);
    if (has_line) next_event = std::min(next_event, output_.front().time);
    now_ = std::max(now_, next_event);
    if (read_at_ && *read_at_ <= now_) {
      read_at_.reset();
      say(current_.lines);
      return {event_kind::sent, {}, now_};
    }
    if (has_line && output_.front().time <= now_) {
      taken_ = std::move(output_.front().text);
      const time_point time = output_.front().time;
      output_.pop_front();
      return {event_kind::line, taken_, time};
    }
    if (is_closed_ && output_.empty() && child_lines == output::is_read) {
      return {event_kind::end_of_output, {}, now_};
    }
    return {event_kind::timed_out, {}, now_};
  }
  [[nodiscard]] bool is_all_read() override { return !read_at_; }
  void close_input() noexcept override {
    steps_.emplace_back("close");
    is_closed_ = true;
  }
  void abandon() noexcept override { is_closed_ = true; }
  void kill(int signal) noexcept override {
    steps_.emplace_back("kill");
    exit_ = {0, signal};
  }
  std::optional<tool::child_exit> wait_exit(time_point deadline) override {
    if (!is_closed_ && exit_.signal == 0) {
      now_ = std::max(now_, deadline);
      return std::nullopt;
    }
    return exit_;
  }
  std::string error_text() override { return "its last words"; }

  /// Writes a line that answers nothing.
  void say_at_once(const std::string& line) { output_.push_back({line, now_}); }
  void pass(std::chrono::nanoseconds time) { now_ += time; }
  /// The lines that were sent to it since the last call, "close" and "kill".
  std::vector<std::string> taken() { return std::exchange(steps_, {}); }

 private:
  struct output_line {
    std::string text;
    time_point time;
  };

  void say(const std::vector<written_line>& lines) {
    time_point time = now_;
    for (const written_line& line : lines) output_.push_back({line.text, time += line.delay});
  }

  reaction_to_line react_;
  std::map<std::string, std::deque<reaction>> planned_;
  time_point now_{std::chrono::hours(1)};
  reaction current_;
  std::optional<time_point> read_at_;  ///< when it has read the line that was sent last
  std::deque<output_line> output_;
  std::string taken_;
  bool is_closed_ = false;
  tool::child_exit exit_{};
  std::vector<std::string> steps_;
};

}  // namespace kclxx::test
