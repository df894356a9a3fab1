// SPDX-License-Identifier: Apache-2.0
#include "protocol/json_string.hpp"

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/text.hpp"

using namespace kclxx::protocol;

namespace {

std::string unescaped(const std::string& token) {
  return nlohmann::json::parse(token).get<std::string>();
}

}  // namespace

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
