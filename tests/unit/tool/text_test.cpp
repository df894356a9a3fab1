// SPDX-License-Identifier: Apache-2.0
#include "tool/text.hpp"

#include <chrono>

#include "support/catch.hpp"

using namespace kclxx::tool;
using namespace std::chrono_literals;

TEST_CASE("a text in XML is neither markup nor a character that XML excludes", "[tool]") {
  CHECK(xml("<a b=\"c\">&\n") == "&lt;a b=&quot;c&quot;&gt;&amp;\n");
  CHECK(xml("\x01\uffff\ufffe\xff") == "???\ufffd");
  CHECK(xml("\u009b\u202e\x7f\t") == "???\t");
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
