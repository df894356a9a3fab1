// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <kclxx/log.hpp>

namespace kclxx::driver {

/// Leaves out warnings that repeat: of each kind, the first few in a minute are written, and the
/// next one after that minute gives the number that was left out. Two messages are of one kind when
/// they differ in numbers only. When a minute has many kinds, those that come last are one kind.
/// What is left out is told: at the latest by rest(), or when its kind makes room for another.
///
/// Thread safety: none.
class log_limiter {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::size_t most_in_a_period = 10;
  static constexpr std::chrono::minutes period{1};

  /// The messages to write. Errors and infos always pass.
  std::vector<std::string> pass(log_level level, std::string text, time_point now);
  /// At the end: a message for each kind of which some were left out.
  std::vector<std::string> rest();

 private:
  struct kind {
    std::string pattern;
    time_point began;
    std::size_t count = 0;
    std::size_t left_out = 0;
    std::string last{};
  };

  std::size_t kind_of(const std::string& text, time_point now, std::vector<std::string>& passed);

  std::vector<kind> kinds_;  // the few that there are; the first takes what finds no room
};

}  // namespace kclxx::driver
