// SPDX-License-Identifier: Apache-2.0
#include "protocol/utf8.hpp"

#include <simdjson.h>

#include "base/printable.hpp"

namespace kclxx::protocol {

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text); }

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const detail::character first = detail::first_character(text);
    result.append(first.is_utf8 ? text.substr(0, first.size) : "\xEF\xBF\xBD");
    text.remove_prefix(first.size);
  }
  return result;
}

}  // namespace kclxx::protocol
