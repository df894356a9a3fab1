// SPDX-License-Identifier: Apache-2.0
// Numbers at the edge of what they may be, and what a bad line leaves.
#include <chrono>
#include <cstdint>
#include <string>

#include "support/catch.hpp"
#include "support/decoded_line.hpp"

using namespace kclxx;
using std::chrono::milliseconds;
using test::decoded_line;

namespace {

decoded_line line_with(const std::string& fields) {
  return decoded_line(R"({"action":"processRecords","records":[{"sequenceNumber":"1",)" + fields +
                      "}]}");
}

std::string error_of(const std::string& fields) {
  const decoded_line line = line_with(fields);
  return line.is_error() ? line.error().field + " " + line.error().problem : std::string();
}

}  // namespace

TEST_CASE("a timestamp is exact in every form of a JSON number", "[protocol][P15]") {
  const auto arrival = [](const std::string& number) {
    const decoded_line line = line_with(R"("approximateArrivalTimestamp":)" + number);
    REQUIRE_FALSE(line.is_error());
    return line.records().at(0).approximate_arrival_timestamp();
  };
  const auto at = [](std::int64_t count) { return record::time_point(milliseconds(count)); };
  CHECK(arrival("1.600000000123e+12") == at(1600000000123));
  CHECK(arrival("1600000000123.999") == at(1600000000123));
  CHECK(arrival("16000000001230e-1") == at(1600000000123));
  CHECK(arrival("-1.5") == at(-1));
  CHECK(arrival("0E999999999999") == at(0));
  CHECK(arrival("9223372036854") == at(9223372036854));
}

TEST_CASE("a timestamp that no time point can hold is an error", "[protocol][P15]") {
  for (const std::string number : {"9223372036855", "-9223372036855", "9000000000000000",
                                   "9223372036854775808", "-9223372036854775808", "1E300"}) {
    CHECK(error_of(R"("approximateArrivalTimestamp":)" + number) ==
          "records[0].approximateArrivalTimestamp is out of range");
  }
  // Beyond a double: simdjson does not take it for a number.
  CHECK_FALSE(error_of(R"("approximateArrivalTimestamp":1E400)").empty());
}

TEST_CASE("a sub-sequence number is one that the daemon's long can hold", "[protocol][P21]") {
  CHECK(error_of(R"("subSequenceNumber":9223372036854775807)").empty());
  CHECK(error_of(R"("subSequenceNumber":9223372036854775808)") ==
        "records[0].subSequenceNumber is not an integer from 0 on");
}

TEST_CASE("of a field that appears twice the last one counts", "[protocol]") {
  const decoded_line line(
      R"({"action":"processRecords","records":[{"sequenceNumber":"7"}],"records":[]})");
  CHECK(line.records().empty());
  CHECK_FALSE(line.as<protocol::process_records>().largest.has_value());
}

TEST_CASE("a bad line leaves no records", "[protocol]") {
  const decoded_line line(
      R"({"action":"processRecords","records":[{"sequenceNumber":"7"},{"sequenceNumber":"x"}]})");
  CHECK(line.is_error());
  CHECK(line.records().empty());
}
