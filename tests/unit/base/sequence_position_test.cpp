// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <stdexcept>

#include <kclxx/sequence_position.hpp>

#include "support/catch.hpp"

using kclxx::sequence_position;

TEST_CASE("positions are ordered as numbers, then by sub-sequence number", "[position][P35]") {
  CHECK(sequence_position("9") < sequence_position("10"));
  CHECK(sequence_position("0010") == sequence_position("10"));
  CHECK(sequence_position("10", 1) > sequence_position("10"));
  CHECK(sequence_position("9", 100) < sequence_position("10"));
  CHECK(sequence_position("0") == sequence_position("000"));
  const std::string digits(56, '4');
  CHECK(sequence_position(digits + "8") > sequence_position(digits + "7"));
  CHECK(sequence_position(digits) < sequence_position(digits + "0"));
}

TEST_CASE("sentinels sort as the KCL sorts them", "[position]") {
  const char* ascending[] = {"AT_TIMESTAMP", "TRIM_HORIZON", "LATEST", "0", "99", "SHARD_END"};
  for (std::size_t i = 0; i + 1 < std::size(ascending); ++i) {
    CHECK(sequence_position(ascending[i]) < sequence_position(ascending[i + 1]));
  }
  CHECK_FALSE(sequence_position("LATEST").is_number());
  CHECK(sequence_position("7").is_number());
}

TEST_CASE("128 digits fit, and nothing else than digits and sentinels", "[position][P16]") {
  const std::string longest(sequence_position::capacity, '9');
  CHECK(sequence_position(longest).sequence_number() == longest);
  CHECK_FALSE(sequence_position::parse(longest + "9"));
  for (const char* text : {"", "-1", "1 ", "0x1", "latest", "1.0"}) {
    CHECK_FALSE(sequence_position::parse(text));
  }
  CHECK_THROWS_WITH(sequence_position(longest + "9"),
                    "a sequence number of 129 characters: at most 128 are supported");
  CHECK_THROWS_AS(sequence_position("abc"), std::invalid_argument);
}

TEST_CASE("a position keeps its text and prints as a pair", "[position]") {
  std::ostringstream out;
  out << sequence_position("007", 2);
  CHECK(out.str() == "007/2");
}
