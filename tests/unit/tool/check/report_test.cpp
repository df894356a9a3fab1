// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/text.hpp"
#include "tool/check/rule.hpp"

using namespace kclxx::check;
using namespace std::chrono_literals;

namespace {

const rule sample{"some-rule", "the child keeps #1 of the rules", "P2, P3", "It \"hangs\".",
                  nullptr};

std::string tap(const result& judged) {
  std::ostringstream out;
  write_tap(out, 7, sample, judged);
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
        "ok 7 - some-rule: the child keeps \\#1 of the rules # SKIP it never\\\\ncheckpoints\n");
}

TEST_CASE("TAP has what was expected of a broken rule, what was seen and why it matters",
          "[check]") {
  CHECK(tap({result::verdict::failed, "no \"status\"", "first\nsecond: \t3\n"}) ==
        "not ok 7 - some-rule: the child keeps \\#1 of the rules\n"
        "  ---\n"
        "  expected: \"the child keeps #1 of the rules\"\n"
        "  seen: \"no \\\"status\\\"\"\n"
        "  why: \"It \\\"hangs\\\".\"\n"
        "  see: \"docs/protocol.md, P2, P3\"\n"
        "  stderr:\n"
        "    - \"first\"\n"
        "    - \"second: \\t3\"\n"
        "  ...\n");
}

TEST_CASE("a report has nothing of the child that a terminal could obey", "[check]") {
  const std::string bad = kclxx::test::obeyed_text();
  for (const auto verdict : {result::verdict::skipped, result::verdict::failed}) {
    std::string report = tap({verdict, bad, bad});
    std::erase(report, '\n');
    CHECK_FALSE(kclxx::test::has_obeyed(report));
    CHECK_FALSE(kclxx::test::has_raw_byte(report));
  }
}

TEST_CASE("a rule that passed with a hint is ok in TAP, with the hint and why it matters",
          "[check]") {
  CHECK(tap({result::verdict::passed, "3 of 4 messages"}) ==
        "ok 7 - some-rule: the child keeps \\#1 of the rules\n"
        "  ---\n"
        "  hint: \"3 of 4 messages\"\n"
        "  why: \"It \\\"hangs\\\".\"\n"
        "  see: \"docs/protocol.md, P2, P3\"\n"
        "  ...\n");
}

TEST_CASE("JUnit XML counts the verdicts, and what XML cannot hold does not reach it", "[check]") {
  std::ostringstream out;
  write_junit(out, "child <1>",
              {{sample,
                {result::verdict::failed, "a & b \x01 \xff",
                 "say <no> \uFFFE\uFFFF\uFFFD\u009b\u202e\x7f\t", 1234ms}},
               {sample, {result::verdict::skipped, "never", {}, 1ms}},
               {sample, {result::verdict::passed, "a & b"}},
               {sample, {}}});
  CHECK(out.str() ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuite name=\"kclxx check -- child &lt;1&gt;\" tests=\"4\" failures=\"1\" "
        "skipped=\"1\" errors=\"0\" time=\"1.235\">\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"1.234\">\n"
        "    <failure message=\"a &amp; b ? \uFFFD\">expected: the child keeps #1 of the rules\n"
        "seen: a &amp; b ? \uFFFD\n"
        "why: It &quot;hangs&quot;.\n"
        "see: docs/protocol.md, P2, P3</failure>\n"
        "    <system-err>say &lt;no&gt; ??\uFFFD???\t</system-err>\n"
        "  </testcase>\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"0.001\">\n"
        "    <skipped message=\"never\"/>\n"
        "  </testcase>\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"0.000\">\n"
        "    <system-out>hint: a &amp; b</system-out>\n"
        "  </testcase>\n"
        "  <testcase classname=\"kclxx.check\" name=\"some-rule\" time=\"0.000\">\n"
        "  </testcase>\n"
        "</testsuite>\n");
}

TEST_CASE("every rule has a name of its own, by which --only finds it", "[check]") {
  std::set<std::string_view> names;
  for (const rule& candidate : all_rules()) CHECK(names.insert(candidate.name).second);
}
