// SPDX-License-Identifier: Apache-2.0
#include "tool/check/report.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "support/catch.hpp"

using namespace kclxx::check;
using namespace std::chrono_literals;

namespace {

const rule one{"some-rule", "the child keeps #1 of the rules", "Framing", "It \"hangs\".", nullptr};

std::string tap(const result& came) {
  std::ostringstream out;
  write_tap(out, 7, one, came);
  return out.str();
}

}  // namespace

TEST_CASE("a kept rule is one line of TAP; a number sign in it begins no directive", "[check]") {
  CHECK(tap({}) == "ok 7 - some-rule: the child keeps \\#1 of the rules\n");
  std::ostringstream out;
  write_tap_header(out, 3);
  CHECK(out.str() == "TAP version 13\n1..3\n");
}

TEST_CASE("a rule that cannot be judged is skipped in TAP, with the reason", "[check]") {
  CHECK(tap({result::verdict::skipped, "it never\ncheckpoints"}) ==
        "ok 7 - some-rule: the child keeps \\#1 of the rules # SKIP it never checkpoints\n");
}

TEST_CASE("a broken rule tells in TAP what was expected, what was seen and why it matters",
          "[check]") {
  CHECK(tap({result::verdict::failed, "no \"status\"", "first\nsecond: \t3\n"}) ==
        "not ok 7 - some-rule: the child keeps \\#1 of the rules\n"
        "  ---\n"
        "  expected: \"the child keeps #1 of the rules\"\n"
        "  seen: \"no \\\"status\\\"\"\n"
        "  why: \"It \\\"hangs\\\".\"\n"
        "  see: \"docs/protocol.md, Framing\"\n"
        "  stderr:\n"
        "    - \"first\"\n"
        "    - \"second: \\t3\"\n"
        "  ...\n");
}

TEST_CASE("JUnit XML counts the verdicts, and what XML cannot hold does not reach it", "[check]") {
  std::ostringstream out;
  write_junit(out, "child <1>",
              {{one, {result::verdict::failed, "a & b \x01 \xff", "say <no>", 1234ms}},
               {one, {result::verdict::skipped, "never", {}, 1ms}},
               {one, {}}});
  CHECK(out.str() ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"kclxx check -- child &lt;1&gt;\" tests=\"3\" failures=\"1\" "
        "skipped=\"1\" errors=\"0\" time=\"1.235\">\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"1.234\">\n"
        "    <failure message=\"a &amp; b ? \uFFFD\">expected: the child keeps #1 of the rules\n"
        "seen: a &amp; b ? \uFFFD\n"
        "why: It &quot;hangs&quot;.\n"
        "see: docs/protocol.md, Framing</failure>\n"
        "    <system-err>say &lt;no&gt;</system-err>\n"
        "  </testcase>\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"0.001\">\n"
        "    <skipped message=\"never\"/>\n"
        "  </testcase>\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"0.000\">\n"
        "  </testcase>\n"
        "</testsuite>\n");
}

TEST_CASE("every rule has a name of its own, and says what is expected and why", "[check]") {
  std::set<std::string_view> names;
  for (const rule& any : all_rules()) {
    CAPTURE(any.name);
    CHECK(names.insert(any.name).second);
    CHECK(any.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
          std::string_view::npos);
    CHECK(any.expected.size() > 10);
    CHECK_FALSE(any.expected.ends_with('.'));  // it stands behind a name and before a directive
    CHECK(any.why.ends_with('.'));
    CHECK_FALSE(any.section.empty());
    CHECK(any.script != nullptr);
  }
}
