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
  std::string out;
  for (const char c : tool::printable(text)) {
    if (c == '#' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string seconds(std::chrono::milliseconds time) {
  const std::string rest = std::to_string(time.count() % 1000);
  return std::to_string(time.count() / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

void write_case(std::ostream& out, const finished_rule& finished) {
  out << "  <testcase classname=\"kclxx.check\" name=\"" << xml(finished.rule.name) << "\" time=\""
      << seconds(finished.result.took) << "\">\n";
  if (finished.result.is == result::verdict::skipped) {
    out << "    <skipped message=\"" << xml(finished.result.seen) << "\"/>\n";
  } else if (finished.result.is == result::verdict::passed && !finished.result.seen.empty()) {
    out << "    <system-out>hint: " << xml(finished.result.seen) << "</system-out>\n";
  } else if (finished.result.is == result::verdict::failed) {
    out << "    <failure message=\"" << xml(finished.result.seen)
        << "\">expected: " << xml(finished.rule.expected) << "\nseen: " << xml(finished.result.seen)
        << "\nwhy: " << xml(finished.rule.why) << "\nsee: " << xml(see(finished.rule))
        << "</failure>\n";
    if (!finished.result.error_text.empty()) {
      out << "    <system-err>" << xml(finished.result.error_text) << "</system-err>\n";
    }
  }
  out << "  </testcase>\n";
}

}  // namespace

std::string xml(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const kclxx::detail::character first = kclxx::detail::first_character(text);
    const bool is_layout = first.code == '\n' || first.code == '\t';
    const bool is_bad = (kclxx::detail::is_obeyed(first.code) && !is_layout) ||
                        first.code == 0xfffe || first.code == 0xffff;
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

std::size_t count(const std::vector<finished_rule>& all, result::verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(),
                    [&](const finished_rule& finished) { return finished.result.is == verdict; }));
}

std::string see(const rule& rule) { return "docs/protocol.md, " + std::string(rule.cites); }

void write_tap_header(std::ostream& out, std::size_t rules) {
  out << "TAP version 13\n1.." << rules << '\n';
}

void write_tap(std::ostream& out, std::size_t number, const rule& rule, const result& result) {
  const bool is_failed = result.is == check::result::verdict::failed;
  out << (is_failed ? "not ok " : "ok ") << number << " - " << rule.name << ": "
      << escaped(rule.expected);
  if (result.is == check::result::verdict::skipped) out << " # SKIP " << escaped(result.seen);
  out << '\n';
  const bool is_hint = result.is == check::result::verdict::passed && !result.seen.empty();
  if (!is_failed && !is_hint) return;
  out << "  ---\n";
  if (is_failed) write_yaml(out, "expected", rule.expected);
  write_yaml(out, is_failed ? "seen" : "hint", result.seen);
  write_yaml(out, "why", rule.why);
  write_yaml(out, "see", see(rule));
  if (!result.error_text.empty()) {
    out << "  stderr:\n";
    for (const std::string& line : lines_of(result.error_text)) {
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
  for (const finished_rule& finished : all) took += finished.result.took;
  out << junit_beginning << xml(command) << "\" tests=\"" << all.size() << "\" failures=\""
      << count(all, result::verdict::failed) << "\" skipped=\""
      << count(all, result::verdict::skipped) << "\" errors=\"0\" time=\"" << seconds(took)
      << "\">\n";
  for (const finished_rule& finished : all) write_case(out, finished);
  out << "</testsuite>\n";
}

}  // namespace kclxx::check
