// SPDX-License-Identifier: Apache-2.0
#include "base/log_text.hpp"

namespace kclxx::detail {

namespace {

std::string escaped(std::string_view text, unsigned char last_unescaped) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f || byte > last_unescaped) {
      constexpr std::string_view digits = "0123456789abcdef";
      result.append("\\x").append({digits[byte >> 4U], digits[byte & 0xfU]});
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string one_line(std::string_view text) { return escaped(text, 0xff); }

std::string printable_ascii(std::string_view bytes) { return escaped(bytes, 0x7e); }

}  // namespace kclxx::detail
