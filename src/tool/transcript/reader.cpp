// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/reader.hpp"

#include <utility>
#include <variant>

#include "tool/transcript/entry_parser.hpp"
#include "tool/transcript/header.hpp"

namespace kclxx::transcript {

transcript_error::transcript_error(const std::string& name, std::size_t line_number,
                                   const std::string& what)
    : std::runtime_error(name + ":" + std::to_string(line_number) + ": " + what),
      line_number_(line_number),
      problem_at_(std::string_view(this->what()).size() - what.size()) {}

reader::reader(byte_source& source, std::string name, std::size_t max_line)
    : name_(std::move(name)), lines_(source, max_line) {
  std::string_view line;
  if (!next_line(line)) {
    line_number_ = 1;
    fail("the file is empty");
  }
  auto first = line.empty() ? not_a_transcript{"the line is empty"} : parse_first_line(line);
  if (auto* problem = std::get_if<not_a_transcript>(&first)) fail(problem->why);
  if (auto* found = std::get_if<header>(&first)) {
    header_ = std::move(*found);
  } else {
    first_ = line;
  }
}

bool reader::next(entry& out) {
  std::string_view line;
  if (first_) {
    line = *std::exchange(first_, std::nullopt);
  } else if (!next_line(line)) {
    return false;
  }
  out = entry{};
  out.line_number = line_number_;
  if (header_) {
    if (const char* problem = parse_entry(line, out, text_)) fail(problem);
  } else if (is_object(line)) {
    out.line = line;
  } else {
    fail("is not a line of the daemon: a JSON object was expected");
  }
  return true;
}

void reader::fail(const std::string& what) const {
  throw transcript_error(name_, line_number_, what);
}

bool reader::next_line(std::string_view& line) {
  switch (lines_.next(line)) {
    case line_source::result::end:
      return false;
    case line_source::result::line:
      ++line_number_;
      return true;
    case line_source::result::cut_off:
      ++line_number_;
      fail("is cut off: the file ends without a newline");
    case line_source::result::too_long:
      ++line_number_;
      fail("is longer than the limit on lines");
  }
  return false;
}

}  // namespace kclxx::transcript
