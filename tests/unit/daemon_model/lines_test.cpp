// SPDX-License-Identifier: Apache-2.0
// The lines of both sides, as the daemon's JSON library writes and reads them.
#include "daemon_model/lines.hpp"

#include <chrono>
#include <sstream>
#include <string>
#include <variant>

#include "support/catch.hpp"

using kclxx::sequence_position;
using namespace kclxx::daemon_model;

TEST_CASE("the daemon reads a child's line as Jackson does", "[daemon_model][P23]") {
  const auto parsed = [](const std::string& line) {
    std::ostringstream text;
    text << parse_child_message(line);
    return text.str();
  };
  CHECK(parsed(R"({"subSequenceNumber":"5","sequenceNumber":7,"action":"checkpoint"})") ==
        "checkpoint 7/5");
  CHECK(parsed(R"({"action":"checkpoint","subSequenceNumber":2.9})") == "checkpoint null");
  CHECK(parsed(R"({"action":"checkpoint","sequenceNumber":7})") == "checkpoint 7");
  CHECK(std::get<child_checkpoint>(
            parse_child_message(R"({"action":"checkpoint","subSequenceNumber":2.9})"))
            .sub_sequence_number == 2);
  CHECK(parsed(R"({"action":"checkpoint","subSequenceNumber":99999999999999999999})") ==
        "ignored: checkpoint's subSequenceNumber has a type that the daemon cannot read");
  CHECK(parsed(R"({"action":"status"})") == "status for nothing");
  CHECK(parsed(R"({"responseFor":"initialize"})") == "ignored: it has no action");
  CHECK(parsed(R"({"action":"hello"})") == "ignored: 'hello' is no action");
  CHECK(parsed(R"({"action":"leaseLost"})") == "a daemon's leaseLost");
  CHECK(parsed("null") == "null");
  CHECK(parsed("null x") == "null");
  CHECK(parsed("nullx") == "ignored: not JSON");
  CHECK(parsed("\xef\xbb\xbf{\"action\":\"status\"}") == "ignored: a byte order mark");
  CHECK(parsed(R"({"action":"status","responseFor":"x","action":"status"})") ==
        "ignored: it has two actions");
  CHECK(parsed("[1]") == "ignored: it is no object");
  CHECK(parsed("\r") == "an empty line");
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
  CHECK(initialize_line("\"\\/\x01\t\x0b\r~", sequence_position("7")) ==
        "{\"action\":\"initialize\",\"shardId\":\"\\\"\\\\/\\u0001\\t\\u000B\\r~\","
        "\"sequenceNumber\":\"7\",\"subSequenceNumber\":0}");
  CHECK(process_records_line({}, std::nullopt) ==
        R"({"action":"processRecords","records":[],"millisBehindLatest":null})");
}

TEST_CASE("the line of an action without fields has its name", "[daemon_model]") {
  using kclxx::protocol::action_kind;
  CHECK(action_line(action_kind::lease_lost) == R"({"action":"leaseLost"})");
  CHECK(action_line(action_kind::shard_ended) == R"({"action":"shardEnded"})");
  CHECK(action_line(action_kind::shutdown_requested) == R"({"action":"shutdownRequested"})");
}
