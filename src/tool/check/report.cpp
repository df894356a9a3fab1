// SPDX-License-Identifier: Apache-2.0
#include "tool/check/report.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "protocol/json_string.hpp"
#include "tool/text.hpp"

namespace kclxx::check {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A JSON string is a YAML one, too.
void write_yaml(std::ostream& out, std::string_view name, std::string_view text) {
  std::string value;
  protocol::append_quoted(value, text);
  out << "  " << name << ": " << value << '\n';
}

/// For what comes after a test's number: '#' would begin a directive.
std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '#' || c == '\\') made += '\\';
    made += c == '\n' ? ' ' : c;
  }
  return made;
}

using tool::xml;

std::string seconds(std::chrono::milliseconds time) {
  const std::string rest = std::to_string(time.count() % 1000);
  return std::to_string(time.count() / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

void write_case(std::ostream& out, const finished_rule& finished) {
  out << "  <testcase classname=\"kclxx.check\" name=\"" << xml(finished.by.name) << "\" time=\""
      << seconds(finished.came.took) << "\">\n";
  if (finished.came.is == result::verdict::skipped) {
    out << "    <skipped message=\"" << xml(finished.came.seen) << "\"/>\n";
  } else if (finished.came.is == result::verdict::passed && !finished.came.seen.empty()) {
    out << "    <system-out>hint: " << xml(finished.came.seen) << "</system-out>\n";
  } else if (finished.came.is == result::verdict::failed) {
    out << "    <failure message=\"" << xml(finished.came.seen)
        << "\">expected: " << xml(finished.by.expected) << "\nseen: " << xml(finished.came.seen)
        << "\nwhy: " << xml(finished.by.why) << "\nsee: " << xml(see(finished.by))
        << "</failure>\n";
    if (!finished.came.error_text.empty()) {
      out << "    <system-err>" << xml(finished.came.error_text) << "</system-err>\n";
    }
  }
  out << "  </testcase>\n";
}

}  // namespace

std::size_t count(const std::vector<finished_rule>& all, result::verdict what) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(),
                    [&](const finished_rule& finished) { return finished.came.is == what; }));
}

std::string see(const rule& by) { return "docs/protocol.md, " + std::string(by.cites); }

void write_tap_header(std::ostream& out, std::size_t rules) {
  out << "TAP version 13\n1.." << rules << '\n';
}

void write_tap(std::ostream& out, std::size_t number, const rule& by, const result& came) {
  const bool is_failed = came.is == result::verdict::failed;
  out << (is_failed ? "not ok " : "ok ") << number << " - " << by.name << ": "
      << escaped(by.expected);
  if (came.is == result::verdict::skipped) out << " # SKIP " << escaped(came.seen);
  out << '\n';
  const bool is_hint = came.is == result::verdict::passed && !came.seen.empty();
  if (!is_failed && !is_hint) return;
  out << "  ---\n";
  if (is_failed) write_yaml(out, "expected", by.expected);
  write_yaml(out, is_failed ? "seen" : "hint", came.seen);
  write_yaml(out, "why", by.why);
  write_yaml(out, "see", see(by));
  if (!came.error_text.empty()) {
    out << "  stderr:\n";
    for (const std::string& line : lines_of(came.error_text)) {
      std::string value;
      protocol::append_quoted(value, line);
      out << "    - " << value << '\n';
    }
  }
  out << "  ...\n";
}

void write_junit(std::ostream& out, const std::string& command,
                 const std::vector<finished_rule>& all) {
  std::chrono::milliseconds took{};
  for (const finished_rule& finished : all) took += finished.came.took;
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kclxx check -- "
      << xml(command) << "\" tests=\"" << all.size() << "\" failures=\""
      << count(all, result::verdict::failed) << "\" skipped=\""
      << count(all, result::verdict::skipped) << "\" errors=\"0\" time=\"" << seconds(took)
      << "\">\n";
  for (const finished_rule& finished : all) write_case(out, finished);
  out << "</testsuite>\n";
}

}  // namespace kclxx::check
