// SPDX-License-Identifier: Apache-2.0
#include "protocol/text.hpp"

#include "support/catch.hpp"

using namespace kclxx::protocol;

TEST_CASE("each maximal invalid part becomes one U+FFFD, and what is valid stays",
          "[protocol][P8]") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(replace_invalid_utf8("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(replace_invalid_utf8("a\xff"
                             "b") == "a" + bad + "b");
  CHECK(replace_invalid_utf8("\xe2\x82") == bad);                            // cut off
  CHECK(replace_invalid_utf8("\xe2\x82x") == bad + "x");                     // what follows stays
  CHECK(replace_invalid_utf8("\xc0\x80") == bad + bad);                      // overlong
  CHECK(replace_invalid_utf8("\xed\xa0\x80") == bad + bad + bad);            // a surrogate
  CHECK(replace_invalid_utf8("\xf4\x90\x80\x80") == bad + bad + bad + bad);  // beyond U+10FFFF
  CHECK(replace_invalid_utf8("\xf0\x9f\x98") == bad);
}

TEST_CASE("escapes of JSON strings are undone, bad ones refused", "[protocol]") {
  CHECK(unescape(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
  CHECK(unescape(R"("\u00e4\u20ac\ud83d\ude00")") == "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK_FALSE(unescape(R"("\x41")"));
  CHECK_FALSE(unescape(R"("\u12")"));
  CHECK_FALSE(unescape(R"("\ud83d")"));
}
