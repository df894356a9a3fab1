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

TEST_CASE("a time that no record can show is unknown, and the rest of its batch is delivered",
          "[protocol][P14][P15]") {
  const std::string time =
      GENERATE(as<std::string>(), "9223372036855", "-9223372036855",  // one too many
               "1611054011590000", "1.61105401159E15",                // microseconds
               "1611054011590000000",                                 // nanoseconds
               "9223372036854775807", "-9223372036854775808", "9223372036854775808",
               "18446744073709551616", "1E300", "-1E300", "1e400", "-1e99999", "1234567890123456.5",
               "true", "[1,[2]]", R"({"a":{}})", R"("1611054011590")", R"("\/")");
  // The daemon's own form, and one that only the full decoder takes.
  const std::string blank = GENERATE("", " ");
  CAPTURE(time);
  SECTION("of a record") {
    const auto record = [](const std::string& number, const std::string& of) {
      return R"({"data":"YQ==","partitionKey":"k","sequenceNumber":")" + number +
             R"(","approximateArrivalTimestamp":)" + of +
             R"(,"subSequenceNumber":0,"action":"record"})";
    };
    const decoded_line line(blank + R"({"action":"processRecords","records":[)" + record("1", "7") +
                            "," + record("2", time) + "," + record("3", time) + "," +
                            record("4", "8") + R"(],"millisBehindLatest":0})");
    REQUIRE(line.is<protocol::process_records>());
    REQUIRE(line.records().size() == 4);
    CHECK(line.records()[0].approximate_arrival_timestamp());
    CHECK_FALSE(line.records()[1].approximate_arrival_timestamp());
    CHECK_FALSE(line.records()[2].approximate_arrival_timestamp());
    CHECK(line.records()[3].approximate_arrival_timestamp());
    const auto& batch = line.as<protocol::process_records>();
    CHECK(batch.largest == sequence_position("4"));
    CHECK(batch.unknown_time.starts_with("records[1].approximateArrivalTimestamp is "));
    CHECK(batch.millis_behind_latest == milliseconds(0));
  }
  SECTION("of a batch") {
    const decoded_line line(blank + R"({"action":"processRecords","records":[],)" +
                            R"("millisBehindLatest":)" + time + "}");
    REQUIRE(line.is<protocol::process_records>());
    const auto& batch = line.as<protocol::process_records>();
    CHECK_FALSE(batch.millis_behind_latest);
    CHECK(batch.unknown_time.starts_with("millisBehindLatest is "));
  }
}

TEST_CASE("a number in a field that is not needed may be of any size", "[protocol][P13]") {
  const auto* number = GENERATE("1e400", "-1E+99999", "1e-99999", "123456789012345678901234567890");
  CAPTURE(number);
  CHECK(error_of(R"("new":[{"a":)" + std::string(number) + "}]").empty());
}

TEST_CASE("a number that JSON does not have is an error, even in a field that is not needed",
          "[protocol][hostile]") {
  const auto* number =
      GENERATE("01", "+1", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "-", "1.e1", "--1");
  CAPTURE(number);
  CHECK_FALSE(error_of(R"("new":)" + std::string(number)).empty());
}

TEST_CASE("a time without a value is not JSON", "[protocol][P54]") {
  CHECK_FALSE(error_of(R"("approximateArrivalTimestamp":)").empty());
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
