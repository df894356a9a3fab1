// SPDX-License-Identifier: Apache-2.0
#include "tool/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace kclxx::tool {

std::string xml(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const detail::character first = detail::first_character(text);
    const bool is_layout = first.code == '\n' || first.code == '\t';
    const bool is_bad = (detail::is_obeyed(first.code) && !is_layout) || first.code == 0xfffe ||
                        first.code == 0xffff;
    made += !first.is_utf8      ? "\ufffd"
            : is_bad            ? "?"
            : first.code == '&' ? "&amp;"
            : first.code == '<' ? "&lt;"
            : first.code == '>' ? "&gt;"
            : first.code == '"' ? "&quot;"
                                : text.substr(0, first.size);
    text.remove_prefix(first.size);
  }
  return made;
}

std::string to_text(std::chrono::nanoseconds time) {
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
