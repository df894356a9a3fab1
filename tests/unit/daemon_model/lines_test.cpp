// SPDX-License-Identifier: Apache-2.0
// The lines of both sides, as the daemon's JSON library writes and reads them.
#include "daemon_model/lines.hpp"

#include <chrono>
#include <string>
#include <variant>

#include "support/catch.hpp"

using kclxx::sequence_position;
using namespace kclxx::daemon_model;
using reason = ignored_line::reason;

namespace {

child_message checkpoint_with_sub(const std::string& number) {
  return parse_child_message(R"({"action":"checkpoint","sequenceNumber":"1","subSequenceNumber":)" +
                             number + "}");
}

reason why_ignored(const std::string& line) {
  const child_message read = parse_child_message(line);
  REQUIRE(std::holds_alternative<ignored_line>(read));
  return std::get<ignored_line>(read).because;
}

}  // namespace

TEST_CASE("the daemon reads a child's line as Jackson does", "[daemon_model][P23]") {
  const auto parsed = [](const std::string& line) { return to_string(parse_child_message(line)); };
  CHECK(parsed(R"({"subSequenceNumber":"5","sequenceNumber":7,"action":"checkpoint"})") ==
        "checkpoint 7/5");
  CHECK(parsed(R"({"action":"checkpoint","subSequenceNumber":2.9})") == "checkpoint null");
  CHECK(parsed(R"({"action":"checkpoint","sequenceNumber":7})") == "checkpoint 7");
  CHECK(parsed(R"({"action":"checkpoint","subSequenceNumber":99999999999999999999})") ==
        "ignored: checkpoint's subSequenceNumber has a type that the daemon cannot read");
  CHECK(parsed(R"({"action":"status"})") == "status for nothing");
  CHECK(parsed(R"({"responseFor":"initialize"})") == "ignored: it has no action");
  CHECK(parsed(R"({"action":"hello"})") == "ignored: 'hello' is no action");
  CHECK(parsed(R"({"action":"leaseLost"})") == "a daemon's leaseLost");
  CHECK(parsed("null") == "null");
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

TEST_CASE("a fraction loses what follows its point, however small it is", "[daemon_model]") {
  CHECK(checkpoint_with_sub("7.9") == child_message(child_checkpoint{"1", 7}));
  CHECK(checkpoint_with_sub("-7.9") == child_message(child_checkpoint{"1", -7}));
  CHECK(checkpoint_with_sub("1e-400") == child_message(child_checkpoint{"1", 0}));
  CHECK(checkpoint_with_sub("5e-324") == child_message(child_checkpoint{"1", 0}));
}

TEST_CASE("a number beyond 64 bits makes the daemon ignore the line", "[daemon_model]") {
  const std::string number =
      GENERATE("9223372036854775808", "1e19", "-1e19", "1e400", "123456789012345678901234567890");
  CHECK(std::holds_alternative<ignored_line>(checkpoint_with_sub(number)));
}

TEST_CASE("a line that the daemon ignores has the reason as a value", "[daemon_model]") {
  CHECK(why_ignored("hello") == reason::not_json);
  CHECK(why_ignored("[]") == reason::not_an_object);
  CHECK(why_ignored("{}") == reason::no_action);
  CHECK(why_ignored(R"({"action":"status","action":"status"})") == reason::two_actions);
  CHECK(why_ignored(R"({"action":"Status"})") == reason::unknown_action);
  CHECK(why_ignored(R"({"action":"status","note":1})") == reason::unknown_field);
  CHECK(why_ignored(R"({"action":"status","responseFor":{}})") == reason::wrong_type);
  CHECK(why_ignored(R"({"action":7})") == reason::no_action);
  CHECK(why_ignored(R"({"action":""})") == reason::unknown_action);
  CHECK(why_ignored(R"({"action":"status","":1})") == reason::unknown_field);
}

TEST_CASE("the fields of a message that only the daemon sends, and the error, are ignored",
          "[daemon_model]") {
  CHECK(parse_child_message(R"({"action":"checkpoint","sequenceNumber":"1","error":"x"})") ==
        child_message(child_checkpoint{"1", std::nullopt}));
  CHECK(parse_child_message(R"({"action":"processRecords","records":[{}]})") ==
        child_message(unexpected_message{"processRecords"}));
}

TEST_CASE("a number may come as text, whose blanks at both ends are ignored", "[daemon_model]") {
  CHECK(checkpoint_with_sub(R"(" +5 ")") == child_message(child_checkpoint{"1", 5}));
  CHECK(checkpoint_with_sub(R"("\f5\u0001")") == child_message(child_checkpoint{"1", 5}));
  const std::string none = GENERATE(R"("")", R"("  ")", R"("null")", "null");
  CHECK(checkpoint_with_sub(none) == child_message(child_checkpoint{"1", std::nullopt}));
  const std::string wrong =
      GENERATE(R"("x")", R"("5x")", R"("+-5")", R"("5 5")", "true", "[5]", "{}");
  CHECK(std::holds_alternative<ignored_line>(checkpoint_with_sub(wrong)));
}

TEST_CASE("a text may come as any scalar, and is read as it was written", "[daemon_model]") {
  const std::string scalar = GENERATE("true", "false", "7", "2.50");
  CHECK(parse_child_message(R"({"action":"status","responseFor":)" + scalar + "}") ==
        child_message(child_status{scalar}));
}

TEST_CASE("a nested value counts as one value, whatever its keys are", "[daemon_model]") {
  const std::string nested = GENERATE(R"({"action":"status"})", R"([{"action":"status"}])");
  CHECK(why_ignored(R"({"action":"status","responseFor":)" + nested + "}") == reason::wrong_type);
}

TEST_CASE("a status is read, whatever name it repeats", "[daemon_model]") {
  const std::string name = GENERATE("leaseLost", "a~b", "a_b", "[", "");
  CHECK(parse_child_message(R"({"action":"status","responseFor":")" + name + R"("})") ==
        child_message(child_status{name}));
  CHECK(why_ignored(R"({"action":"status","responseFor":"})") == reason::not_json);
}

TEST_CASE("null is a message unless the word continues", "[daemon_model]") {
  CHECK(parse_child_message("null-") == child_message(null_message{}));
  CHECK(parse_child_message("null\xff") == child_message(null_message{}));  // U+FFFD for the daemon
  CHECK(why_ignored("null_") == reason::not_json);
  CHECK(why_ignored("null\xc3\xa4") == reason::not_json);
}
