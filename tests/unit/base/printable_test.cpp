// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "support/catch.hpp"
#include "support/text.hpp"

using namespace kclxx::detail;
using kclxx::test::obeyed_codes;
using kclxx::test::utf8;

TEST_CASE("each character that could be obeyed is escaped, and no other is changed", "[base][P9]") {
  std::string wrong;
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;  // surrogates have no UTF-8
    const auto& codes = obeyed_codes();
    const bool is_obeyed = std::find(codes.begin(), codes.end(), code) != codes.end();
    const std::string text = "a" + utf8(code) + "b";
    const std::string made = printable(text);
    const bool is_right =
        is_obeyed ? made.starts_with("a\\") && made.ends_with("b") && !kclxx::test::has_obeyed(made)
                  : made == text;
    if (!is_right) wrong += std::to_string(static_cast<unsigned>(code)) + " ";
  }
  CHECK(wrong.empty());
}

TEST_CASE("what is escaped can be told apart", "[base]") {
  CHECK(printable("a\n\r\tb") == "a\\n\\r\\tb");
  CHECK(printable(std::string_view("\0\x1b[31m\x7f", 7)) == "\\x00\\x1b[31m\\x7f");
  CHECK(printable("\u0085\u009b\u200e\u061c\u202e\u2066\u2028\ufeff") ==
        "\\u0085\\u009b\\u200e\\u061c\\u202e\\u2066\\u2028\\ufeff");
  CHECK(printable("plain, \xc3\xa4 and \xf0\x9f\x98\x80") ==
        "plain, \xc3\xa4 and \xf0\x9f\x98\x80");
}

TEST_CASE("bytes that are not UTF-8 are escaped one by one", "[base]") {
  for (int byte = 0x80; byte < 0x100; ++byte) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(byte));
    const std::string text(1, static_cast<char>(byte));
    CHECK(printable(text + "z") == std::string(escape) + "z");
    CHECK(printable(text) == escape);
  }
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");                    // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond the last one
  CHECK(printable("\xe2\x80") == "\\xe2\\x80");                    // cut off
}

TEST_CASE("a long text is cut between two characters, and ends with its length", "[base]") {
  CHECK(printable(std::string(120, 'x'), 120) == std::string(120, 'x'));
  CHECK(printable(std::string(121, 'x'), 120) == std::string(88, 'x') + "... (121 bytes)");
  const std::string cut = printable(std::string(1'000'000, '\x1b') + "\xff");
  CHECK(cut.size() <= longest_line);
  CHECK(cut.ends_with("\\x1b... (1000001 bytes)"));
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "\xc3\xa4";
  CHECK(printable(umlauts, 121).ends_with("\xc3\xa4... (400 bytes)"));
}

TEST_CASE("what was made printable is not changed again", "[base]") {
  for (const std::string& text : {kclxx::test::obeyed_text(), std::string(20'000, '\n')}) {
    const std::string once = printable(text);
    CHECK(printable(once) == once);
  }
}

TEST_CASE("a quoted text cannot close its quotes", "[base]") {
  CHECK(quoted("a') parked") == "'a\\') parked'");
  CHECK(quoted("\n") == "'\\n'");
  CHECK(kclxx::detail::quoted(std::string(100'000, '\'')).size() < 600);
}
