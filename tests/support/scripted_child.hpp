// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
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

/// A child without a process: what it does with a line is given. Time passes only while somebody
/// waits.
class scripted_child : public tool::dialogue {
 public:
  using time_point = clock::time_point;
  struct said {
    std::string line;
    std::chrono::nanoseconds after{};
  };
  /// What the child does with a line: how long it takes to read it, what it writes meanwhile, and
  /// what then.
  struct reaction {
    std::vector<said> afterwards;
    std::chrono::nanoseconds reading{};
    std::vector<said> meanwhile{};
  };
  using reactions = std::function<reaction(const std::string& line)>;

  explicit scripted_child(reactions what_it_does = obliging)
      : reactions_(std::move(what_it_does)) {}

  /// Each action gets its status at once.
  static reaction obliging(const std::string& line) {
    const std::string action = action_of(line);
    return action == "checkpoint" ? reaction{} : reaction{{{status_for(action)}}};
  }
  /// The next line with this action gets this reaction.
  void on(const std::string& action, reaction what) { planned_[action].push_back(std::move(what)); }

  [[nodiscard]] time_point now() const noexcept override { return now_; }
  void send(std::string_view text, std::string_view) override {
    steps_.emplace_back(text);
    auto& planned = planned_[action_of(steps_.back())];
    if (planned.empty()) {
      current_ = reactions_(steps_.back());
    } else {
      current_ = std::move(planned.front());
      planned.pop_front();
    }
    sent_at_ = now_ + current_.reading;
    say(current_.meanwhile);
  }
  event next(time_point deadline, output child_lines) override {
    const bool has_line = child_lines == output::is_read && !output_.empty();
    time_point first = deadline;
    if (sent_at_) first = std::min(first, *sent_at_);
    if (has_line) first = std::min(first, output_.front().at);
    now_ = std::max(now_, first);
    if (sent_at_ && *sent_at_ <= now_) {
      sent_at_.reset();
      say(current_.afterwards);
      return {event_kind::sent, {}, 0, now_};
    }
    if (has_line && output_.front().at <= now_) {
      taken_ = std::move(output_.front().line);
      const time_point time = output_.front().at;
      output_.pop_front();
      return {event_kind::line, taken_, taken_.size(), time};
    }
    if (is_closed_ && output_.empty() && child_lines == output::is_read) {
      return {event_kind::end_of_output, {}, 0, now_};
    }
    return {event_kind::timed_out, {}, 0, now_};
  }
  [[nodiscard]] bool is_all_read() override { return !sent_at_; }
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
    const time_point ends = is_closed_ || exit_.signal != 0 ? now_ : ends_at;
    now_ = std::max(now_, std::min(ends, deadline));
    return ends <= now_ ? std::optional(exit_) : std::nullopt;
  }
  std::string error_text() override { return "its last words"; }

  /// Before the line goes out that a test is about.
  void say_at_once(const std::string& line) { output_.push_back({line, now_}); }
  void pass(std::chrono::nanoseconds time) { now_ += time; }
  time_point ends_at = time_point::max();  // unless it is killed or its input ends before
  /// Since the last call.
  std::vector<std::string> taken() { return std::exchange(steps_, {}); }

 private:
  struct output_line {
    std::string line;
    time_point at;
  };

  void say(const std::vector<said>& texts) {
    time_point time = now_;
    for (const said& text : texts) output_.push_back({text.line, time += text.after});
  }

  reactions reactions_;
  std::map<std::string, std::deque<reaction>> planned_;
  time_point now_{std::chrono::hours(1)};
  reaction current_;
  std::optional<time_point> sent_at_;
  std::deque<output_line> output_;
  std::string taken_;
  bool is_closed_ = false;
  tool::child_exit exit_{};
  std::vector<std::string> steps_;
};

}  // namespace kclxx::test
