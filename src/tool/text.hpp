// SPDX-License-Identifier: Apache-2.0
// Text for people: what the tool's commands print, each thing in one way.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include "base/printable.hpp"

namespace kclxx::tool {

using detail::printable;

/// Three digits and a unit: "640 us", "1.5 s", "20 min".
inline std::string to_text(std::chrono::nanoseconds time) {
  struct unit {
    double size;  // seconds
    double begin;
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
  const unit& in = *std::find_if(units.begin(), units.end() - 1,
                                 [&](const unit& one) { return seconds >= one.begin; });
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.3g %s", seconds / in.size, in.name);
  return text.data();
}

}  // namespace kclxx::tool
