// SPDX-License-Identifier: Apache-2.0
// How the commands of the tool print values for people, and read those that people wrote.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include "base/printable.hpp"

namespace kclxx::tool {

using detail::printable;

/// Three digits and a unit: "640 us", "1.5 s", "20 min".
inline std::string to_text(std::chrono::nanoseconds time) {
  struct unit {
    double seconds;
    double min_seconds;  // the shortest time that is printed in this unit
    const char* name;
  };
  static constexpr std::array<unit, 6> units{{{3600, 36000, "h"},
                                              {60, 600, "min"},
                                              {1, 1, "s"},
                                              {1e-3, 1e-3, "ms"},
                                              {1e-6, 1e-6, "us"},
                                              {1e-9, 0, "ns"}}};
  if (time.count() == 0) return "0 s";
  const double seconds = std::chrono::duration<double>(time).count();
  const unit& best = *std::find_if(units.begin(), units.end() - 1,
                                   [&](const unit& unit) { return seconds >= unit.min_seconds; });
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3g %s", seconds / best.seconds, best.name);
  return text.data();
}

/// Reads the whole text as a number, an integer also in a base. False: it is no number.
template <class Number, class... Base>
bool read_number(std::string_view text, Number& number, Base... base) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base...);
  return error == std::errc() && stop == end;
}

}  // namespace kclxx::tool
