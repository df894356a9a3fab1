// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tool/check/rule.hpp"

namespace kclxx::check {

/// The text for XML 1.0, in content or in an attribute. What is not UTF-8 becomes U+FFFD;
/// what XML cannot hold, or a reader could obey, becomes '?', but for newlines and tabs.
std::string xml(std::string_view text);

/// The version line and the plan.
void write_tap_header(std::ostream& out, std::size_t rules);
/// One test line. A rule that failed, or has a hint, is followed by a block with what was expected,
/// what was seen and why it matters. `number` counts from 1.
void write_tap(std::ostream& out, std::size_t number, const rule& rule, const result& result);

struct finished_rule {
  check::rule rule;
  check::result result;
};

std::size_t count(const std::vector<finished_rule>& all, result::verdict verdict);
/// Where a reader finds the rule: "docs/protocol.md, P31".
std::string see(const rule& rule);

/// What write_junit writes first, by which an earlier result is known.
inline constexpr std::string_view junit_beginning =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"kclxx check -- ";
/// The whole run as JUnit XML. `command` is what was checked.
void write_junit(std::ostream& out, const std::string& command,
                 const std::vector<finished_rule>& all);

}  // namespace kclxx::check
