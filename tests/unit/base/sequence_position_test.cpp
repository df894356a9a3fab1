// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "base/arrival_time.hpp"
#include "support/catch.hpp"

using kclxx::sequence_position;

TEST_CASE("sentinels sort as the KCL sorts them", "[position]") {
  const char* ascending[] = {"AT_TIMESTAMP", "TRIM_HORIZON", "LATEST", "0", "99", "SHARD_END"};
  for (std::size_t i = 0; i + 1 < std::size(ascending); ++i) {
    CHECK(sequence_position(ascending[i]) < sequence_position(ascending[i + 1]));
  }
  CHECK_FALSE(sequence_position("LATEST").is_number());
  CHECK(sequence_position("7").is_number());
}

TEST_CASE("129 digits fit, and nothing else than digits and sentinels", "[position][P16]") {
  const std::string longest(sequence_position::capacity, '9');
  CHECK(sequence_position(longest).sequence_number() == longest);
  CHECK_FALSE(sequence_position::parse(longest + "9"));
  for (const char* text : {"", "-1", "1 ", "0x1", "latest", "1.0", "1/0"}) {
    CHECK_FALSE(sequence_position::parse(text));
  }
  CHECK_THROWS_WITH(sequence_position(longest + "9"),
                    "a sequence number of 130 characters: at most 129 are supported");
  CHECK_THROWS_AS(sequence_position("abc"), std::invalid_argument);
}

TEST_CASE(
    "positions of any length keep their text, and are ordered as numbers, then by sub-sequence "
    "number",
    "[position][P16][P35]") {
  std::vector<sequence_position> ascending;
  std::string digits;
  for (std::size_t size = 1; size <= sequence_position::capacity; ++size) {
    digits.push_back(static_cast<char>('1' + size % 9));
    // Leading zeros stay in the text and do not change the value.
    for (std::size_t zeros = 0; zeros + size <= sequence_position::capacity; zeros += 26) {
      const std::string text = std::string(zeros, '0') + digits;
      REQUIRE(sequence_position(text).sequence_number() == text);
      REQUIRE(sequence_position(text) == sequence_position(digits));
    }
    std::string below = digits;
    --below.back();
    ascending.emplace_back(below);
    ascending.emplace_back(digits);
    ascending.emplace_back(digits, 100);
    std::string above = digits;
    ++above.front();
    ascending.emplace_back(above);
  }
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      REQUIRE((ascending[i] <=> ascending[j]) == (i <=> j));
    }
  }
  CHECK(ascending.back() < sequence_position("SHARD_END"));
  CHECK(sequence_position("0") == sequence_position("000"));
}

TEST_CASE("a position is a value without memory of its own", "[position]") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<sequence_position>);
}

TEST_CASE("what a position prints reads back as the same position", "[position]") {
  const std::vector<sequence_position> positions = {
      sequence_position("007", 2), sequence_position(std::string(56, '4'), UINT64_MAX),
      sequence_position(std::string(129, '9')), sequence_position("TRIM_HORIZON"),
      sequence_position("SHARD_END", 1)};
  for (const sequence_position& position : positions) {
    const auto read = sequence_position::from_string(to_string(position));
    REQUIRE(read);
    CHECK(*read == position);
    CHECK(to_string(*read) == to_string(position));
  }
  std::ostringstream out;
  out << positions.front();
  CHECK(out.str() == "007/2");
  for (const char* text : {"", "/", "7", "7/", "/0", "7/-1", "7/+1", "7/1 ", " 7/1", "7/1/1",
                           "7/18446744073709551616", "LATEST", "latest/0"}) {
    CHECK_FALSE(sequence_position::from_string(text));
  }
}

TEST_CASE("a sequence number has its record's arrival, if it is one of Kinesis'", "[base]") {
  // With the arrival that AWS shows for it in its documents: 1545084650.987.
  CHECK(kclxx::detail::arrival_of("49590338271490256608559692538361571095921575989136588898") ==
        1545084650);
  CHECK(kclxx::detail::arrival_of("49545115243490985018280067714973144582180062593244200961") ==
        std::nullopt);
  for (const char* text :
       {"", "TRIM_HORIZON", "1", "4959033827149025660855969253836157109592157598913658889x",
        "99999999999999999999999999999999999999999999999999999999"}) {
    CHECK(kclxx::detail::arrival_of(text) == std::nullopt);
  }
}
