// SPDX-License-Identifier: Apache-2.0
#include "tool/check/report.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/markup.hpp"
#include "support/text.hpp"
#include "tool/check/badge.hpp"
#include "tool/check/report_page.hpp"

using namespace kclxx::check;
using namespace std::chrono_literals;

namespace {

const rule sample{"some-rule", "the child keeps #1 of the rules", "P2, P3", "It \"hangs\".",
                  nullptr};

std::string tap(const result& came) {
  std::ostringstream out;
  write_tap(out, 7, sample, came);
  return out.str();
}

/// How many rules of docs/protocol.md are named in "P2, P31"; each must be stated there.
int numbers_cited(std::string_view cites) {
  const std::string page = kclxx::test::read_file(KCLXX_SOURCE_DIR "/docs/protocol.md");
  std::istringstream words{std::string(cites)};
  int count = 0;
  for (std::string word; words >> word; ++count) {
    if (word.back() == ',') word.pop_back();
    CAPTURE(word);
    CHECK(word.starts_with('P'));
    CHECK(page.find("**" + word + "**") != std::string::npos);
  }
  return count;
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
  write_junit(
      out, "child <1>",
      {{sample,
        {result::verdict::failed, "a & b \x01 \xff", "say <no> \uFFFE\uFFFF\uFFFD", 1234ms}},
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
        "    <system-err>say &lt;no&gt; ??\uFFFD</system-err>\n"
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

TEST_CASE("the page has each rule, in detail those that failed or have a hint, as text",
          "[check]") {
  std::ostringstream out;
  write_page(out, "child <1>",
             {{sample, {result::verdict::passed, "3 of 4 messages"}},
              {sample, {result::verdict::failed, "a & b", "say <no>", 1234ms}},
              {sample, {result::verdict::skipped, "it never <asks>"}},
              {sample, {}}});
  const std::string page = out.str();
  CHECK(kclxx::test::unbalanced(page) == "");
  for (const char* outside : {"https:", "src=", "href=", "url(", "@import", "<script"}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == std::string::npos);
  }
  const auto has = [&](std::string_view text) { return page.find(text) != std::string::npos; };
  CHECK(has("<code>child &lt;1&gt;</code>, 1.23 s."));
  CHECK(has("<text x=\"101\" y=\"15\""));
  const std::string failed =
      "<h2 class=\"bad\">some-rule</h2>\n<dl>\n"
      "<dt>expected</dt><dd>the child keeps #1 of the rules</dd>\n<dt>seen</dt><dd>a &amp; b</dd>\n"
      "<dt>why</dt><dd>It &quot;hangs&quot;.</dd>\n"
      "<dt>see</dt><dd>docs/protocol.md, P2, P3</dd>\n</dl>\n<pre>say &lt;no&gt;</pre>\n";
  CHECK(has(failed));
  CHECK(page.find("<dt>hint</dt><dd>3 of 4 messages</dd>") > page.find(failed));
  CHECK(has("<td class=\"bad\">fail</td>"));
  CHECK(has("<td class=\"ok\">pass, hint</td>"));
  CHECK(has("<td class=\"ok\">pass</td>"));
  CHECK(
      has("<td class=\"skipped\">skip</td><td>the child keeps #1 of the rules<br/>"
          "<span class=\"skipped\">it never &lt;asks&gt;</span></td>"));
}

TEST_CASE("the badge has how many rules were kept, in green, red or grey", "[check]") {
  const auto badge = [](const std::vector<finished_rule>& all) {
    std::ostringstream out;
    write_badge(out, all);
    CHECK(kclxx::test::unbalanced(out.str()) == "");
    return out.str();
  };
  const finished_rule passed{sample, {}};
  const finished_rule failed{sample, {result::verdict::failed, "it hangs"}};
  const finished_rule skipped{sample, {result::verdict::skipped, "never"}};
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const std::string green = badge({passed, passed, skipped});
  CHECK(has(green, ">2 of 3 rules, 1 skipped</text>"));
  CHECK(has(green, "fill=\"#0b7a4b\""));
  const std::string red = badge({passed, failed});
  CHECK(has(red, ">1 of 2 rules, 1 failed</text>"));
  CHECK(has(red, "fill=\"#b42318\""));
  const std::string grey = badge({skipped});
  CHECK(has(grey, ">0 of 1 rules, 1 skipped</text>"));
  CHECK(has(grey, "fill=\"#52606d\""));
}

TEST_CASE("every rule has a name of its own, what is expected, why, and the rules that it judges",
          "[check]") {
  std::set<std::string_view> names;
  for (const rule& any : all_rules()) {
    CAPTURE(any.name);
    CHECK(names.insert(any.name).second);
    CHECK(any.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
          std::string_view::npos);
    CHECK(any.expected.size() > 10);
    CHECK_FALSE(any.expected.ends_with('.'));  // it comes after a name and before a directive
    CHECK(any.why.ends_with('.'));
    CHECK(numbers_cited(any.cites) >= 1);
    CHECK(any.script != nullptr);
  }
}

TEST_CASE("the pages that give the number of rules give the right one", "[check]") {
  const std::string count = std::to_string(all_rules().size());
  const auto has = [](const std::string& page, const std::string& text) {
    return kclxx::test::contains(kclxx::test::read_file(KCLXX_SOURCE_DIR "/" + page), text);
  };
  CHECK(has("README.md", " " + count + " rules"));
  CHECK(has("docs/check.md", " " + count + " rules"));
  CHECK(has("CHANGELOG.md", " " + count + " rules"));
  CHECK(has("docs/results/comparison.md", "| **all " + count + "** |"));
}
