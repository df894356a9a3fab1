// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/writer.hpp"

#include <array>
#include <chrono>

#include "protocol/base64_encoder.hpp"
#include "protocol/json_string.hpp"
#include "protocol/utf8.hpp"
#include "tool/transcript/lines.hpp"

namespace kclxx::transcript {

namespace {

constexpr std::string_view end_of_entry = "}\n";

bool is_line(const entry& one) {
  return one.kind == entry_kind::daemon_line || one.kind == entry_kind::child_line;
}

void append_value(std::string& out, std::string_view line) {
  if (protocol::replace_invalid_utf8(line) == line) {
    out.append("\"text\":");
    protocol::append_quoted(out, line);
  } else {
    out.append("\"bytes\":\"");
    protocol::append_base64(out, line);
    out.append("\"");
  }
}

void append_event(std::string& out, const entry& one) {
  switch (one.kind) {
    case entry_kind::exit:
      out.append("\"exit\",\"status\":").append(std::to_string(one.number));
      break;
    case entry_kind::killed:
      out.append("\"exit\",\"signal\":").append(std::to_string(one.number));
      break;
    case entry_kind::end_of_input:
      out.append("\"end_of_input\"");
      break;
    default:
      out.append("\"end_of_output\"");
  }
}

}  // namespace

void writer::write(const header& head) {
  const std::string line = to_line(head) + "\n";
  const std::array<std::string_view, 1> pieces{line};
  sink_.write(pieces);
}

void writer::write(const entry& one, bool is_unfinished) {
  begin_text(one);
  if (is_line(one)) {
    if (!is_unfinished && one.whole_length == 0 && is_object(one.line)) {
      text_.append("\"line\":");
      const std::array<std::string_view, 3> pieces{text_, one.line, end_of_entry};
      sink_.write(pieces);
      return;
    }
    append_value(text_, one.line);
  } else {
    append_event(text_, one);
  }
  text_.append(end_of_entry);
  const std::array<std::string_view, 1> pieces{text_};
  sink_.write(pieces);
}

// Up to what kind of value comes.
void writer::begin_text(const entry& one) {
  text_.assign("{\"at\":");
  text_.append(std::to_string(one.at.value_or(std::chrono::microseconds(0)).count()));
  if (is_line(one)) {
    text_.append(one.kind == entry_kind::child_line ? ",\"from\":\"child\","
                                                    : ",\"from\":\"daemon\",");
    if (one.whole_length > 0) {
      text_.append("\"length\":").append(std::to_string(one.whole_length)).append(",");
    }
  } else {
    text_.append(",\"event\":");
  }
}

}  // namespace kclxx::transcript
