// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/line_summary.hpp"

#include <chrono>
#include <string>
#include <variant>

#include "support/catch.hpp"

using namespace kclxx::transcript;
using kclxx::protocol::decode_error;
using namespace std::chrono_literals;
using kclxx::sequence_position;

namespace {

template <class Wanted>
Wanted summarize(const std::string& line) {
  const std::string before = line;
  line_summarizer summarizer;
  auto result = summarizer.summarize(line);
  CHECK(line == before);
  REQUIRE(std::holds_alternative<Wanted>(result));
  return std::get<Wanted>(std::move(result));
}

line_summary fine(const std::string& line) { return summarize<line_summary>(line); }
std::string wrong(const std::string& line) {
  const auto error = summarize<decode_error>(line);
  return (error.field.empty() ? "" : error.field + " ") + error.problem;
}

}  // namespace

TEST_CASE("the summary of a batch has its size and its largest position", "[transcript][summary]") {
  const auto batch =
      fine(R"({"action":"processRecords","records":[)"
           R"({"action":"record","data":"aGVsbG8=","sequenceNumber":"100","subSequenceNumber":7},)"
           R"({"data":null,"partitionKey":"a\"b","sequenceNumber":"99","subSequenceNumber":9},)"
           R"({"data":"YWJj" ,"sequenceNumber":"0100","subSequenceNumber":8}],)"
           R"("millisBehindLatest":1234})");
  CHECK(batch.kind == line_kind::process_records);
  CHECK(batch.action == "processRecords");
  CHECK(batch.records == 3);
  CHECK(batch.data_bytes == 8);
  CHECK(batch.position == sequence_position("100", 8));
  CHECK(batch.millis_behind_latest == 1234ms);
}

TEST_CASE("deep nesting is an error of the line, and so is a number that does not fit",
          "[transcript][summary]") {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  CHECK(wrong("{\"action\":" + deep + "}") != "");
  CHECK(wrong(R"({"action":"processRecords","records":)" + deep + "}") != "");
  CHECK(fine(R"({"action":"new","more":)" + deep + "}").kind == line_kind::unknown_action);
  for (const char* number :
       {"1e300", "18446744073709551616", "9223372036854775808", "1.5", "\"1\""}) {
    CHECK(wrong(R"({"action":"checkpoint","sequenceNumber":"1","subSequenceNumber":)" +
                std::string(number) + "}")
              .starts_with("\"subSequenceNumber\" is no whole number from "));
  }
}

TEST_CASE("the summary tells the kinds of lines apart, whatever the order of their fields",
          "[transcript][summary]") {
  const auto begin = fine(R"({"sequenceNumber":"TRIM_HORIZON","shardId":"s","subSequenceNumber":0,)"
                          R"("action":"initialize"})");
  CHECK(begin.kind == line_kind::initialize);
  CHECK(begin.shard_id == "s");
  CHECK(begin.position == sequence_position("TRIM_HORIZON"));
  CHECK(fine(R"({"action":"leaseLost"})").kind == line_kind::lease_lost);
  CHECK(fine(R"({"action":"shardEnded"})").kind == line_kind::shard_ended);
  CHECK(fine(R"({"action":"shutdownRequested"})").kind == line_kind::shutdown_requested);
  CHECK(fine(R"({"action":"shutdown","reason":"SHARD_END"})").kind == line_kind::shard_ended);
  CHECK(fine(R"({"action":"shutdown","reason":"LEASE_LOST"})").action == "shutdown");
  CHECK(fine(R"({"action":"new","records":[]})").kind == line_kind::unknown_action);
}

TEST_CASE("an answer keeps what was asked for, however odd that was", "[transcript][summary]") {
  const auto failed =
      fine(R"({"action":"checkpoint","sequenceNumber":"abc","subSequenceNumber":-1,)"
           R"("error":"IllegalArgumentException"})");
  CHECK(failed.kind == line_kind::checkpoint_answer);
  CHECK(failed.sequence_number == "abc");
  CHECK(failed.sub_sequence_number == -1);
  CHECK(failed.error == "IllegalArgumentException");
  const auto null = fine(
      R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":null})");
  CHECK_FALSE(null.sequence_number);
  CHECK_FALSE(null.sub_sequence_number);
  CHECK_FALSE(null.error);
}
