// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/text.hpp"

using namespace kclxx::protocol;

namespace {

std::optional<std::string> unescaped(std::string_view token, bool wants_replaced = false) {
  bool is_replaced = false;
  auto text = unescape(token, is_replaced);
  CHECK(is_replaced == wants_replaced);
  return text;
}

/// What was replaced.
std::optional<std::string> replaced(std::string_view token) { return unescaped(token, true); }

}  // namespace

TEST_CASE("escapes of JSON strings are undone, bad ones refused", "[protocol]") {
  CHECK(unescaped(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
  CHECK(unescaped(R"("\u00e4\u20ac\ud83d\ude00")") == "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK_FALSE(unescaped(R"("\x41")"));
  CHECK_FALSE(unescaped(R"("\u12")"));
  CHECK_FALSE(unescaped(R"("\u12 4")"));
  CHECK_FALSE(unescaped(R"("\ud800\x41")"));
  CHECK_FALSE(unescaped(R"("\)"));
  CHECK_FALSE(unescaped(R"("\u)"));
}

TEST_CASE("the escape of half a surrogate pair becomes U+FFFD", "[protocol][P8]") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(replaced(R"("\ud800")") == bad);
  CHECK(replaced(R"("\uDFFF")") == bad);
  CHECK(replaced(R"("a\ud83dz")") == "a" + bad + "z");
  CHECK(replaced(R"("\ude00\ud83d")") == bad + bad);
  CHECK(replaced(R"("\ud800\ud83d\ude00")") == bad + "\xf0\x9f\x98\x80");
  CHECK(replaced(R"("\ud800\n\u0041")") == bad + "\nA");
  // An escaped backslash is no beginning of an escape.
  CHECK(replaced(R"("\\ud800\ud800")") == "\\ud800" + bad);
  CHECK(unescaped(R"("\\ud800")") == "\\ud800");
}

TEST_CASE("a text in quotes means the text again, whatever bytes it has", "[protocol]") {
  for (int first = 0; first < 256; ++first) {
    const std::string text = {static_cast<char>(first), 'z'};
    std::string token;
    append_quoted(token, text);
    CAPTURE(first, token);
    CHECK(token.find('\n') == std::string::npos);
    CHECK(unescaped(token) == (first < 0x80 ? text : "\xEF\xBF\xBDz"));
  }
  std::string token;
  append_quoted(token, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
  CHECK(token == "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
}

TEST_CASE("a text in quotes has nothing that a terminal could obey", "[protocol]") {
  for (const char32_t code : kclxx::test::obeyed_codes()) {
    const std::string text = "a" + kclxx::test::utf8(code) + "b";
    std::string quoted;
    append_quoted(quoted, text);
    CHECK_FALSE(kclxx::test::has_obeyed(quoted));
    CHECK(unescaped(quoted) == text);
  }
  std::string quoted;
  append_quoted(quoted, "\u009b\x7f/");
  CHECK(quoted == R"("\u009b\u007f/")");
}

TEST_CASE("what is no JSON string is refused", "[protocol]") {
  for (const char* token : {"", "\"", "abc", "\"a", "a\"", "\"a\"b\"", "\"a\nb\"", "\"\xff\""}) {
    CAPTURE(token);
    CHECK_FALSE(unescaped(token));
  }
}

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

TEST_CASE("a text is UTF-8 when nothing in it would be replaced", "[protocol][P8]") {
  std::mt19937 random(31);
  // Bytes at the borders of the ranges.
  constexpr std::string_view bytes =
      "a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5\xff";
  int valid = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text(random() % 70, 'x');
    for (std::size_t changes = random() % 5; changes > 0 && !text.empty(); --changes) {
      text[random() % text.size()] = bytes[random() % bytes.size()];
    }
    CAPTURE(text);
    REQUIRE(is_utf8(text) == (replace_invalid_utf8(text) == text));
    REQUIRE(is_utf8(replace_invalid_utf8(text)));
    valid += is_utf8(text) ? 1 : 0;
  }
  CHECK(valid > 1000);
  CHECK(valid < 49000);
}
