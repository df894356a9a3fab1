// SPDX-License-Identifier: Apache-2.0
#include "tool/check/badge.hpp"

#include <ostream>
#include <string>
#include <string_view>

namespace kclxx::check {

namespace {

constexpr std::string_view title = "kclxx check";

std::string figures(const std::vector<finished_rule>& all) {
  const auto failed = count(all, result::verdict::failed);
  const auto skipped = count(all, result::verdict::skipped);
  std::string text = std::to_string(count(all, result::verdict::passed)) + " of " +
                     std::to_string(all.size()) + " rules";
  if (failed > 0) text += ", " + std::to_string(failed) + " failed";
  if (skipped > 0) text += ", " + std::to_string(skipped) + " skipped";
  return text;
}

std::string_view color(const std::vector<finished_rule>& all) {
  if (count(all, result::verdict::failed) > 0) return "#b42318";
  return count(all, result::verdict::passed) > 0 ? "#0b7a4b" : "#52606d";
}

/// Which font there will be is not known: textLength fits the text to its place.
std::size_t width_of(std::string_view text) { return text.size() * 7; }

constexpr std::size_t margin = 8;

void write_text(std::ostream& out, std::size_t left, std::string_view text) {
  out << "<text x=\"" << left + margin << "\" y=\"15\" textLength=\"" << width_of(text)
      << "\" lengthAdjust=\"spacingAndGlyphs\">" << text << "</text>\n";
}

}  // namespace

void write_badge(std::ostream& out, const std::vector<finished_rule>& all) {
  const std::string text = figures(all);
  const std::size_t left = width_of(title) + 2 * margin;
  const std::size_t right = width_of(text) + 2 * margin;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << left + right
      << "\" height=\"22\" role=\"img\" aria-label=\"" << title << ": " << text << "\">\n<title>"
      << title << ": " << text << "</title>\n<rect width=\"" << left + right
      << "\" height=\"22\" rx=\"4\" fill=\"" << color(all) << "\"/>\n<path d=\"M4 0H" << left
      << "V22H4A4 4 0 0 1 0 18V4A4 4 0 0 1 4 0Z\" fill=\"#1f2933\"/>\n"
         "<g fill=\"#fff\" font-family=\"Verdana, DejaVu Sans, sans-serif\" font-size=\"12\">\n";
  write_text(out, 0, title);
  write_text(out, left, text);
  out << "</g>\n</svg>\n";
}

}  // namespace kclxx::check
