// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/log.hpp>

namespace kclxx::driver {

/// Leaves out warnings that repeat. The first few warnings of a kind in a minute are written, and
/// the next warning after that minute gives the number that was left out. Two messages are of the
/// same kind when they differ in numbers only. Once there are many kinds, all messages of further
/// kinds count as a single kind.
///
/// Thread safety: none.
class log_limiter {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::size_t max_in_a_period = 10;
  static constexpr std::chrono::minutes period{1};
  static constexpr std::size_t max_kinds = 64;  // texts come from users, too

  /// The message to write; std::nullopt when it is left out. Errors and infos are always written.
  std::optional<std::string> pass(log_level level, std::string text, time_point now) {
    if (level != log_level::warning) return text;
    std::string pattern = pattern_of(text);
    if (kinds_.size() >= max_kinds && !kinds_.contains(pattern)) pattern.clear();
    kind& current = kinds_.try_emplace(std::move(pattern), kind{now}).first->second;
    if (now - current.began >= period) {
      current.began = now;
      current.count = 1;
      return with_number(std::move(text), std::exchange(current.left_out, 0));
    }
    if (++current.count <= max_in_a_period) return text;
    ++current.left_out;
    current.last = std::move(text);
    return std::nullopt;
  }
  /// At the end: the last message of each kind of which messages were left out.
  std::vector<std::string> take_left_out() {
    std::vector<std::string> messages;
    for (auto& [pattern, ended] : std::exchange(kinds_, {})) {
      if (ended.left_out > 0) messages.push_back(with_number(ended.last, ended.left_out - 1));
    }
    return messages;
  }

 private:
  struct kind {
    time_point began;
    std::size_t count = 0;
    std::size_t left_out = 0;
    std::string last{};
  };

  /// The text, in which # stands for each number.
  static std::string pattern_of(std::string_view text) {
    std::string pattern;
    for (const char c : text) {
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit || !pattern.ends_with('#')) pattern += is_digit ? '#' : c;
    }
    return pattern;
  }
  static std::string with_number(std::string text, std::size_t left_out) {
    if (left_out == 0) return text;
    return std::move(text) + " (" + std::to_string(left_out) + " more like this " +
           (left_out == 1 ? "was" : "were") + " left out)";
  }

  std::map<std::string, kind> kinds_;
};

}  // namespace kclxx::driver
