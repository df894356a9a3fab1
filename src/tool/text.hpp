// SPDX-License-Identifier: Apache-2.0
// Text for people: what the tool's commands print, each thing in one way.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// The text for a terminal: what is not UTF-8 becomes U+FFFD. What could control the terminal or
/// change the order of the text becomes '?': control characters (C0, DEL, C1), line and paragraph
/// separators, and the marks for the direction of text.
std::string printable(std::string_view text);

/// The text for XML 1.0 and HTML, in content or in an attribute. What is not UTF-8 becomes U+FFFD,
/// and what XML cannot hold becomes '?'.
std::string xml(std::string_view text);

/// Three digits and a unit: "640 us", "1.5 s", "20 min".
std::string to_text(std::chrono::nanoseconds time);

}  // namespace kclxx::tool
