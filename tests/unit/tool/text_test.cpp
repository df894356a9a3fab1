// SPDX-License-Identifier: Apache-2.0
#include "tool/text.hpp"

#include <chrono>

#include "support/catch.hpp"

using namespace kclxx::tool;
using namespace std::chrono_literals;

TEST_CASE("what a child wrote can neither control the terminal nor reverse its text", "[tool]") {
  CHECK(printable("plain, \xc3\xa4 and \xf0\x9f\x98\x80") ==
        "plain, \xc3\xa4 and \xf0\x9f\x98\x80");
  CHECK(printable("\x1b[31m\n\x7f") == "?[31m??");
  CHECK(printable("\u009b31m") == "?31m");
  CHECK(printable("a\u202eb\u2066c\u200fd\u2028e") == "a?b?c?d?e");
  CHECK(printable("\xff") == "\ufffd");
}

TEST_CASE("a text in XML is neither markup nor a character that XML excludes", "[tool]") {
  CHECK(xml("<a b=\"c\">&\n") == "&lt;a b=&quot;c&quot;&gt;&amp;\n");
  CHECK(xml("\x01\uffff\ufffe\xff") == "???\ufffd");
}

TEST_CASE("a duration has three digits and the unit that fits", "[tool]") {
  CHECK(to_text(0ns) == "0 s");
  CHECK(to_text(999ns) == "999 ns");
  CHECK(to_text(18'432ns) == "18.4 us");
  CHECK(to_text(200ms) == "200 ms");
  CHECK(to_text(1500ms) == "1.5 s");
  CHECK(to_text(90s) == "90 s");
  CHECK(to_text(20min) == "20 min");
  CHECK(to_text(11h) == "11 h");
}
