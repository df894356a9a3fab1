// SPDX-License-Identifier: Apache-2.0
#include "tool/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "protocol/utf8.hpp"

namespace kclxx::tool {

namespace {

/// Calls `append(code_point, bytes)` for each character of a text that is UTF-8.
template <class Append>
void for_each_character(std::string_view text, Append append) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    std::uint32_t code = size == 1 ? first : first & (0xffU >> (size + 1));
    for (const char next : text.substr(1, size - 1)) {
      code = code << 6 | (static_cast<unsigned char>(next) & 0x3fU);
    }
    append(code, text.substr(0, size));
    text.remove_prefix(size);
  }
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

bool changes_direction_or_line(std::uint32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string made;
  for_each_character(protocol::replace_invalid_utf8(text),
                     [&](std::uint32_t code, std::string_view bytes) {
                       const bool is_bad = is_control(code) || changes_direction_or_line(code);
                       made += is_bad ? "?" : bytes;
                     });
  return made;
}

std::string xml(std::string_view text) {
  std::string made;
  for_each_character(
      protocol::replace_invalid_utf8(text), [&](std::uint32_t code, std::string_view bytes) {
        const bool is_bad =
            (code < 0x20 && code != '\n' && code != '\t') || code == 0xfffe || code == 0xffff;
        made += is_bad        ? "?"
                : code == '&' ? "&amp;"
                : code == '<' ? "&lt;"
                : code == '>' ? "&gt;"
                : code == '"' ? "&quot;"
                              : bytes;
      });
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
