// SPDX-License-Identifier: Apache-2.0
#include "driver/log_limiter.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::driver {

namespace {

constexpr std::size_t most_kinds = 64;  // texts come from users, too

/// The text with each number as a single #.
std::string pattern_of(std::string_view text) {
  std::string pattern;
  bool is_in_number = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) {
      pattern += c;
    } else if (!is_in_number) {
      pattern += '#';
    }
    is_in_number = is_digit;
  }
  return pattern;
}

std::string with_number(std::string text, std::size_t left_out) {
  if (left_out == 0) return text;
  return std::move(text) + " (" + std::to_string(left_out) + " more like this " +
         (left_out == 1 ? "was" : "were") + " left out)";
}

}  // namespace

/// A kind whose minute has passed makes room, and what it left out is told.
std::size_t log_limiter::kind_of(const std::string& text, time_point now,
                                 std::vector<std::string>& passed) {
  std::string pattern = pattern_of(text);
  const auto begin = kinds_.begin();
  auto found =
      std::find_if(begin, kinds_.end(), [&](const kind& one) { return one.pattern == pattern; });
  if (found != kinds_.end()) return static_cast<std::size_t>(found - begin);
  if (kinds_.size() < most_kinds) {
    kinds_.push_back({std::move(pattern), now});
    return kinds_.size() - 1;
  }
  found = std::find_if(begin + 1, kinds_.end(),
                       [&](const kind& one) { return now - one.began >= period; });
  if (found == kinds_.end()) return 0;
  if (found->left_out > 0) passed.push_back(with_number(found->last, found->left_out - 1));
  *found = {std::move(pattern), now};
  return static_cast<std::size_t>(found - begin);
}

std::vector<std::string> log_limiter::pass(log_level level, std::string text, time_point now) {
  if (level != log_level::warning) return {std::move(text)};
  std::vector<std::string> passed;
  if (kinds_.empty()) kinds_.push_back({"", now});
  kind& current = kinds_[kind_of(text, now, passed)];
  if (now - current.began >= period) {
    current.began = now;
    current.count = 1;
    passed.push_back(with_number(std::move(text), std::exchange(current.left_out, 0)));
  } else if (++current.count <= most_in_a_period) {
    passed.push_back(std::move(text));
  } else {
    ++current.left_out;
    current.last = std::move(text);
  }
  return passed;
}

std::vector<std::string> log_limiter::rest() {
  std::vector<std::string> messages;
  for (kind& one : kinds_) {
    if (one.left_out > 0) messages.push_back(with_number(one.last, one.left_out - 1));
  }
  kinds_.clear();
  return messages;
}

}  // namespace kclxx::driver
