// SPDX-License-Identifier: Apache-2.0
#include "driver/log_limiter.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::driver {

namespace {

// Beyond this many kinds the least recent is forgotten: texts come from users, too.
constexpr std::size_t most_kinds = 64;

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

std::optional<std::string> log_limiter::pass(log_level level, std::string text, time_point now) {
  if (level != log_level::warning) return text;
  std::string pattern = pattern_of(text);
  const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                  [&](const kind& one) { return one.pattern == pattern; });
  if (found == kinds_.end()) {
    if (kinds_.size() >= most_kinds) kinds_.erase(kinds_.begin());
    kinds_.push_back({std::move(pattern), now, 1, 0, {}});
    return text;
  }
  std::rotate(found, found + 1, kinds_.end());
  kind& current = kinds_.back();
  if (now - current.began >= period) {
    current.began = now;
    current.count = 1;
    return with_number(std::move(text), std::exchange(current.left_out, 0));
  }
  if (++current.count <= most_in_a_period) return text;
  ++current.left_out;
  current.last = std::move(text);
  return std::nullopt;
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
