// SPDX-License-Identifier: Apache-2.0
#include "tool/check/report_page.hpp"

#include <chrono>
#include <ostream>

#include "tool/check/badge.hpp"
#include "tool/html_page.hpp"
#include "tool/text.hpp"

namespace kclxx::check {

namespace {

using tool::xml;

constexpr std::string_view report_style = R"(
.badge { margin: 12px 0; }
td, th { text-align: left; white-space: normal; vertical-align: top; }
td.name, td.time { white-space: nowrap; }
.skipped { color: #52606d; }
pre { background: #f5f7fa; padding: 10px; border-radius: 4px; font-size: 13px; margin: 8px 0 0;
  white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; }
dt { color: #52606d; }
dd { margin: 0; overflow-wrap: anywhere; }
)";

bool has_hint(const result& came) {
  return came.is == result::verdict::passed && !came.seen.empty();
}

void write_term(std::ostream& out, std::string_view name, std::string_view text) {
  out << "<dt>" << name << "</dt><dd>" << xml(text) << "</dd>\n";
}

/// What a rule that failed, or has a hint, came to.
void write_section(std::ostream& out, const finished_rule& finished) {
  const bool is_hint = has_hint(finished.came);
  out << "<section><h2 class=\"" << (is_hint ? "hint" : "bad") << "\">" << xml(finished.by.name)
      << "</h2>\n<dl>\n";
  write_term(out, "expected", finished.by.expected);
  write_term(out, is_hint ? "hint" : "seen", finished.came.seen);
  write_term(out, "why", finished.by.why);
  write_term(out, "see", see(finished.by));
  out << "</dl>\n";
  if (!finished.came.error_text.empty()) {
    out << "<pre>" << xml(finished.came.error_text) << "</pre>\n";
  }
  out << "</section>\n";
}

void write_row(std::ostream& out, const finished_rule& finished) {
  out << "<tr><td class=\"name\">" << xml(finished.by.name) << "</td>";
  switch (finished.came.is) {
    case result::verdict::passed:
      out << "<td class=\"ok\">" << (has_hint(finished.came) ? "pass, hint" : "pass") << "</td>";
      break;
    case result::verdict::failed:
      out << "<td class=\"bad\">fail</td>";
      break;
    case result::verdict::skipped:
      out << "<td class=\"skipped\">skip</td>";
      break;
  }
  out << "<td>" << xml(finished.by.expected);
  if (finished.came.is == result::verdict::skipped) {
    out << "<br/><span class=\"skipped\">" << xml(finished.came.seen) << "</span>";
  }
  out << "</td><td>" << xml(finished.by.cites) << "</td><td class=\"time\">"
      << tool::to_text(finished.came.took) << "</td></tr>\n";
}

}  // namespace

void write_page(std::ostream& out, const std::string& command,
                const std::vector<finished_rule>& all) {
  std::chrono::milliseconds took{};
  for (const finished_rule& finished : all) took += finished.came.took;
  tool::begin_page(out, "kclxx check", report_style);
  out << "<div class=\"badge\">\n";
  write_badge(out, all);
  out << "</div>\n<div><code>" << xml(command) << "</code>, " << tool::to_text(took)
      << ". P1, P2, ... are rules of docs/protocol.md.</div>\n";
  for (const finished_rule& finished : all) {
    if (finished.came.is == result::verdict::failed) write_section(out, finished);
  }
  for (const finished_rule& finished : all) {
    if (has_hint(finished.came)) write_section(out, finished);
  }
  out << "<section><div class=\"scroll\"><table>\n<tr><th>rule</th><th>result</th>"
         "<th>expected</th><th>see</th><th>took</th></tr>\n";
  for (const finished_rule& finished : all) write_row(out, finished);
  out << "</table></div></section>\n";
  tool::end_page(out);
}

}  // namespace kclxx::check
