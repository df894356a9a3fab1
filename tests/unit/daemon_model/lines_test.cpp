// SPDX-License-Identifier: Apache-2.0
// The lines of both sides, as the daemon's JSON library writes and reads them.
#include "daemon_model/lines.hpp"

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using kclxx::sequence_position;
using namespace kclxx::daemon_model;

TEST_CASE("the daemon reads a child's line as Jackson does", "[daemon_model][P23]") {
  const std::string wrong_long =
      "ignored: checkpoint's subSequenceNumber has a type that the daemon cannot read";
  const auto with_sub = [](const std::string& number) {
    return R"({"action":"checkpoint","sequenceNumber":"1","subSequenceNumber":)" + number + "}";
  };
  const std::vector<std::pair<std::string, std::string>> all{
      {R"({"subSequenceNumber":"5","sequenceNumber":7,"action":"checkpoint"})", "checkpoint 7/5"},
      {R"({"action":"checkpoint","subSequenceNumber":2.9})", "checkpoint null"},
      {R"({"action":"checkpoint","sequenceNumber":7,"error":"x"})", "checkpoint 7"},
      {with_sub("-7.9"), "checkpoint 1/-7"},
      {with_sub("1e-400"), "checkpoint 1/0"},
      {with_sub(R"("\f +5\u0001")"), "checkpoint 1/5"},
      {with_sub(R"(" ")"), "checkpoint 1"},
      {with_sub(R"("null")"), "checkpoint 1"},
      {with_sub(R"("5x")"), wrong_long},
      {with_sub(R"("+-5")"), wrong_long},
      {with_sub("true"), wrong_long},
      {with_sub("[5]"), wrong_long},
      {with_sub("9223372036854775808"), wrong_long},
      {with_sub("99999999999999999999"), wrong_long},
      {with_sub("1e400"), "ignored: not JSON"},
      {R"({"action":"status"})", "status for nothing"},
      {R"({"action":"status","responseFor":2.50})", "status for 2.50"},
      {R"({"responseFor":"initialize"})", "ignored: it has no action"},
      {R"({"action":7})", "ignored: it has no action"},
      {R"({"action":"Status"})", "ignored: 'Status' is no action"},
      {R"({"action":"status","":1})", "ignored: the daemon knows no field '' in status"},
      {R"({"action":"status","responseFor":[{"action":"status"}]})",
       "ignored: status's responseFor has a type that the daemon cannot read"},
      {R"({"action":"status","responseFor":"x","action":"status"})", "ignored: it has two actions"},
      {R"({"action":"processRecords","records":[{}]})", "a daemon's processRecords"},
      {"null", "null"},
      {"null-", "null"},
      {"null x", "null"},
      {"null\xff", "null"},  // U+FFFD in Java
      {"nullx", "ignored: not JSON"},
      {"null_", "ignored: not JSON"},
      {"null\xc3\xa4", "ignored: not JSON"},
      {"\xef\xbb\xbf{\"action\":\"status\"}", "ignored: a byte order mark"},
      {"[1]", "ignored: it is no object"},
      {"\r", "an empty line"},
  };
  for (const auto& [line, meaning] : all) {
    CAPTURE(line);
    std::ostringstream text;
    text << parse_child_message(line);
    CHECK(text.str() == meaning);
  }
}

TEST_CASE("the daemon's lines are Jackson's bytes", "[daemon_model][P10]") {
  using kclxx::record;
  CHECK(initialize_line("shardId-\"0\"", sequence_position("TRIM_HORIZON")) ==
        R"({"action":"initialize","shardId":"shardId-\"0\"","sequenceNumber":"TRIM_HORIZON",)"
        R"("subSequenceNumber":0})");
  const record records[] = {record({.data = "ab",
                                    .partition_key = "k\x1f\n\xc3\xa4",
                                    .sequence_number = "12",
                                    .sub_sequence_number = 3,
                                    .approximate_arrival_timestamp = std::chrono::milliseconds(7)}),
                            record({.sequence_number = "13"})};
  CHECK(
      process_records_line(records, 250) ==
      R"({"action":"processRecords","records":[{"data":"YWI=",)"
      "\"partitionKey\":\"k\\u001F\\n\xc3\xa4\","
      R"("sequenceNumber":"12","approximateArrivalTimestamp":7,"subSequenceNumber":3,"action":"record"},)"
      R"({"data":null,"partitionKey":null,"sequenceNumber":"13",)"
      R"("approximateArrivalTimestamp":null,"subSequenceNumber":0,"action":"record"}],)"
      R"("millisBehindLatest":250})");
}

TEST_CASE("the daemon escapes what JSON demands, and nothing else", "[daemon_model][P10]") {
  CHECK(initialize_line("\"\\/\x01\t\x0b\r~", std::nullopt) ==
        "{\"action\":\"initialize\",\"shardId\":\"\\\"\\\\/\\u0001\\t\\u000B\\r~\","
        "\"sequenceNumber\":null,\"subSequenceNumber\":null}");
  CHECK(process_records_line({}, std::nullopt) ==
        R"({"action":"processRecords","records":[],"millisBehindLatest":null})");
}
