// SPDX-License-Identifier: Apache-2.0
#include "protocol/encoder.hpp"

#include <algorithm>
#include <charconv>

#include "protocol/json_string.hpp"

namespace kclxx::protocol {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

void append_status(std::string& out, std::string_view action) {
  out.append("\n{\"action\":\"status\",\"responseFor\":");
  if (std::all_of(action.begin(), action.end(), is_letter)) {  // nearly always
    out.append("\"").append(action).append("\"}\n");
  } else {
    append_quoted(out, action);
    out.append("}\n");
  }
}

void append_checkpoint(std::string& out, const std::optional<sequence_position>& position) {
  out.append("\n{\"action\":\"checkpoint\",\"sequenceNumber\":");
  if (position) {
    char digits[20];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, position->sub_sequence_number()).ptr;
    out.append("\"");
    position->append_sequence_number(out);
    out.append("\",\"subSequenceNumber\":").append(digits, end);
  } else {
    out.append("null,\"subSequenceNumber\":null");
  }
  out.append("}\n");
}

}  // namespace kclxx::protocol
