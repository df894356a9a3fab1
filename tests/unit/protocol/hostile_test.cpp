// SPDX-License-Identifier: Apache-2.0
// Whatever comes, nothing is read or written out of bounds (run under AddressSanitizer), and what
// is not JSON is an error.
#include <random>

#include "support/catch.hpp"
#include "support/decoded_line.hpp"

using kclxx::test::decoded_line;

namespace {

const std::string lines[] = {
    R"({"action":"initialize","shardId":"shardId-1","sequenceNumber":"495","subSequenceNumber":3})",
    R"({"action":"processRecords","records":[{"action":"record","data":"aGVsbG8=","partitionKey":"k\u00e4","sequenceNumber":"495","approximateArrivalTimestamp":1600000000000,"subSequenceNumber":0},{"data":null,"sequenceNumber":"496"}],"millisBehindLatest":1.5E3})",
    R"({"action":"shutdown","reason":"ZOMBIE"})",
    R"({"action":"checkpoint","sequenceNumber":"495","subSequenceNumber":0,"error":"X"})",
};

}  // namespace

TEST_CASE("a line that is cut off anywhere is an error", "[protocol][hostile]") {
  for (const std::string& line : lines) {
    for (std::size_t length = 0; length < line.size(); ++length) {
      CAPTURE(line.substr(0, length));
      CHECK(decoded_line(line.substr(0, length)).is_error());
    }
    CHECK_FALSE(decoded_line(line).is_error());
  }
}

TEST_CASE("something after the object is an error", "[protocol][hostile]") {
  for (const std::string& line : lines) {
    for (const std::string tail : {"x", "{}", "}", "]", ",", "\"", "{\"action\":\"leaseLost\"}",
                                   "//", "\v", "\xef\xbb\xbf"}) {
      CAPTURE(line, tail);
      CHECK(decoded_line(line + tail).is_error());
      CHECK(decoded_line(line + " \t" + tail).is_error());
    }
  }
}

TEST_CASE("a NUL is an error wherever it is", "[protocol][hostile]") {
  for (const std::string& line : lines) {
    for (std::size_t at = 0; at <= line.size(); ++at) {
      std::string changed = line;
      changed.insert(at, 1, '\0');
      CAPTURE(at, line);
      CHECK(decoded_line(changed).is_error());
    }
  }
}

TEST_CASE("a byte order mark is an error", "[protocol][hostile]") {
  for (const std::string& line : lines) CHECK(decoded_line("\xef\xbb\xbf" + line).is_error());
}

TEST_CASE("what is not JSON is an error, even in a field that is not needed",
          "[protocol][hostile]") {
  const auto* value =
      GENERATE("", "nul", "True", "[1,]", "[1 2]", R"({"a"})", R"({"a":1,})", "{1:2}", R"("\q")",
               R"("\u12g4")", R"("\ud83")", "\"\t\"", "'a'", "[}", R"([{"a":[)", "1/*c*/", "01",
               "+1", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "-", "1.e1", "--1");
  const std::string name = GENERATE("new", "approximateArrivalTimestamp");
  CAPTURE(value, name);
  const std::string field = "\"" + name + "\":" + value + "}";
  CHECK(decoded_line(R"({"action":"leaseLost",)" + field).is_error());
  CHECK(
      decoded_line(R"({"action":"processRecords","records":[{"sequenceNumber":"1",)" + field + "]}")
          .is_error());
}

TEST_CASE("one byte changed, to any value and anywhere, does no harm", "[protocol][hostile]") {
  for (const std::string& line : lines) {
    for (std::size_t at = 0; at < line.size(); ++at) {
      for (int byte = 0; byte < 256; byte += 5) {
        std::string changed = line;
        changed[at] = static_cast<char>(byte);
        const decoded_line result(changed);
        if (result.is_error()) CHECK_FALSE(result.error().problem.empty());
      }
    }
  }
}

TEST_CASE("noise is an error", "[protocol][hostile]") {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string noise(random() % 200, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    CHECK(decoded_line(noise).is_error());
  }
}

TEST_CASE("a value that is not needed is skipped, however deep it is nested",
          "[protocol][hostile]") {
  for (const std::size_t depth : {10U, 1000U, 1000000U}) {
    const std::string deep = R"({"x":)" + std::string(depth, '[') + std::string(depth, ']') +
                             R"(,"action":"leaseLost"})";
    const decoded_line result(deep);
    CHECK_FALSE(result.is_error());
  }
}
