// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/reader.hpp"

#include <utility>
#include <variant>

#include "tool/transcript/lines.hpp"

namespace kclxx::transcript {

namespace {

// Small enough to be searched while still in the cache, large enough for few system calls.
constexpr std::size_t chunk = std::size_t{256} << 10;

}  // namespace

transcript_error::transcript_error(const std::string& name, std::size_t line_number,
                                   const std::string& message)
    : std::runtime_error(name + ":" + std::to_string(line_number) + ": " + message),
      line_number_(line_number),
      problem_at_(std::string_view(this->what()).size() - message.size()) {}

reader::reader(byte_source& source, std::string name, std::size_t max_line)
    : source_(source), name_(std::move(name)), max_line_(max_line) {
  std::string_view line;
  if (!next_line(line)) {
    line_number_ = 1;
    fail("the file is empty");
  }
  auto first = parse_first_line(line);
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

void reader::fail(const std::string& message) const {
  throw transcript_error(name_, line_number_, message);
}

bool reader::next_line(std::string_view& line) {
  while (read_line(line)) {
    line = without_blanks(line);
    if (!line.empty()) return true;
  }
  return false;
}

bool reader::read_line(std::string_view& line) {
  bool is_whole = lines_.next(line);
  while (!is_whole && lines_.rest().size() <= max_line_) {
    const std::size_t size = source_.read(lines_.prepare(chunk), chunk);
    if (size == 0) break;
    lines_.commit(size);
    is_whole = lines_.next(line);
  }
  if (!is_whole) line = lines_.rest();
  if (!is_whole && without_blanks(line).empty()) return false;
  ++line_number_;
  if (line.size() > max_line_) fail("is longer than the limit on lines");
  if (!is_whole) fail("is cut off: the file ends without a newline");
  return true;
}

}  // namespace kclxx::transcript
