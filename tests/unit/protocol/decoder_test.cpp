// SPDX-License-Identifier: Apache-2.0
#include "protocol/decoder.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include <nlohmann/json.hpp>

#include "protocol/encoder.hpp"
#include "support/catch.hpp"
#include "support/decoded_line.hpp"
#include "support/scripted_daemon.hpp"

using namespace kclxx;
using std::chrono::milliseconds;
using test::decoded_line;

TEST_CASE("initialize has the shard and where reading begins", "[protocol][P10]") {
  decoded_line line(
      R"({"action":"initialize","shardId":"shardId-1","sequenceNumber":"495","subSequenceNumber":3})");
  CHECK(line.as<protocol::initialize>().shard_id == "shardId-1");
  CHECK(line.as<protocol::initialize>().start_position == sequence_position("495", 3));
  for (const char* sentinel : {"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP", "SHARD_END"}) {
    decoded_line other(R"({"action":"initialize","shardId":"s","sequenceNumber":")" +
                       std::string(sentinel) + "\"}");
    CHECK(other.as<protocol::initialize>().start_position == sequence_position(sentinel));
  }
}

TEST_CASE("the last actions of all versions are distinguished", "[protocol][P11]") {
  CHECK(decoded_line(R"({"action":"leaseLost"})").is<protocol::lease_lost>());
  CHECK(decoded_line(R"({"action":"shardEnded"})").is<protocol::shard_ended>());
  CHECK(decoded_line(R"({"action":"shutdownRequested"})").is<protocol::shutdown_requested>());
  for (const char* reason : {"TERMINATE", "SHARD_END"}) {
    CHECK(decoded_line(R"({"action":"shutdown","reason":")" + std::string(reason) + "\"}")
              .is<protocol::shard_ended>());
  }
  for (const char* reason : {"ZOMBIE", "LEASE_LOST"}) {
    CHECK(decoded_line(R"({"action":"shutdown","reason":")" + std::string(reason) + "\"}")
              .is<protocol::lease_lost>());
  }
}

TEST_CASE("an answer to a checkpoint has an error or none", "[protocol][P12][P40]") {
  decoded_line persisted(R"({"action":"checkpoint","sequenceNumber":"1","error":null})");
  CHECK_FALSE(persisted.as<protocol::checkpoint_answer>().error);
  decoded_line failed(R"({"action":"checkpoint","error":"ThrottlingException"})");
  CHECK(failed.as<protocol::checkpoint_answer>().error == "ThrottlingException");
}

TEST_CASE("an unknown action is known by its name, whatever its fields are", "[protocol][P29]") {
  decoded_line line(R"({"records":7,"x":[{"y":[]}],"action":"Tune\u0055p","reason":null})");
  CHECK(line.is<protocol::unknown_action>());
  CHECK(line.message().action == "TuneUp");
}

TEST_CASE("fields may come in any order, unknown ones are ignored", "[protocol][P13]") {
  decoded_line line(
      R"({"new":{"a":[1,2,{"b":null}]},"millisBehindLatest":7,"records":[{"subSequenceNumber":2,)"
      R"("more":[],"sequenceNumber":"9","partitionKey":"k","data":"YWJj","action":"record",)"
      R"("approximateArrivalTimestamp":1600000000123}], "checkpoint" : null , "action" : "processRecords" } )");
  REQUIRE(line.is<protocol::process_records>());
  REQUIRE(line.records().size() == 1);
  const record& record = line.records()[0];
  CHECK(record.data() == "abc");
  CHECK(record.partition_key() == "k");
  CHECK(record.position() == sequence_position("9", 2));
  CHECK(record.approximate_arrival_timestamp()->time_since_epoch() == milliseconds(1600000000123));
  CHECK(line.as<protocol::process_records>().millis_behind_latest == milliseconds(7));
}

TEST_CASE("what may be null, or missing, is", "[protocol][P14]") {
  const std::string fields = GENERATE(
      R"("sequenceNumber":"9")",
      R"("data":null,"partitionKey":null,"sequenceNumber":"9","approximateArrivalTimestamp":null,"subSequenceNumber":null)");
  decoded_line line(R"({"action":"processRecords","records":[{)" + fields +
                    R"(}],"millisBehindLatest":null})");
  REQUIRE(line.records().size() == 1);
  const record& record = line.records()[0];
  CHECK_FALSE(record.has_data());
  CHECK(record.data().empty());
  CHECK_FALSE(record.partition_key());
  CHECK_FALSE(record.approximate_arrival_timestamp());
  CHECK(record.sub_sequence_number() == 0);
  CHECK_FALSE(line.as<protocol::process_records>().millis_behind_latest);
  decoded_line initialize(
      R"({"action":"initialize","shardId":"s","sequenceNumber":null,"subSequenceNumber":null})");
  CHECK_FALSE(initialize.as<protocol::initialize>().start_position);
}

TEST_CASE("empty data and an empty key are not null", "[protocol][P19]") {
  decoded_line line(
      R"({"action":"processRecords","records":[{"data":"","partitionKey":"","sequenceNumber":"9"}]})");
  CHECK(line.records()[0].has_data());
  CHECK(line.records()[0].partition_key() == "");
}

TEST_CASE("times may be integers or floating point", "[protocol][P15]") {
  const auto* number = GENERATE("1600000000000", "1600000000000.0", "1.6E12", "1.6e+12");
  decoded_line line(R"({"action":"processRecords","records":[],"millisBehindLatest":)" +
                    std::string(number) + "}");
  CHECK(line.as<protocol::process_records>().millis_behind_latest == milliseconds(1600000000000));
}

TEST_CASE("the largest position is found by value, wherever it is", "[protocol][P35]") {
  decoded_line line(
      R"({"action":"processRecords","records":[{"sequenceNumber":"0099"},)"
      R"({"sequenceNumber":"100","subSequenceNumber":5},{"sequenceNumber":"00100","subSequenceNumber":4},)"
      R"({"sequenceNumber":"20"}]})");
  CHECK(line.as<protocol::process_records>().largest == sequence_position("100", 5));
  decoded_line zero(R"({"action":"processRecords","records":[{"sequenceNumber":"0"}]})");
  CHECK(zero.as<protocol::process_records>().largest == sequence_position("0"));
  decoded_line none(R"({"action":"processRecords","records":[]})");
  CHECK_FALSE(none.as<protocol::process_records>().largest);
}

TEST_CASE("escapes are undone in keys and in data", "[protocol]") {
  decoded_line line(
      R"({"action":"processRecords","records":[{"data":"\/\/8=","partitionKey":"a\"\u00e4","sequenceNumber":"1"}]})");
  REQUIRE(line.records().size() == 1);
  CHECK(line.records()[0].data() == "\xff\xff");
  CHECK(line.records()[0].partition_key() == "a\"\xc3\xa4");
}

TEST_CASE("invalid UTF-8 arrives as U+FFFD, and is reported", "[protocol][P8]") {
  decoded_line line(
      "{\"action\":\"processRecords\",\"records\":[{\"data\":\"YWJj\",\"partitionKey\":\"a\xff\xc3("
      "\","
      "\"sequenceNumber\":\"1\"}]}");
  REQUIRE(line.records().size() == 1);
  CHECK(line.replaced_invalid_utf8());
  CHECK(line.records()[0].partition_key() == "a\xEF\xBF\xBD\xEF\xBF\xBD(");
  CHECK(line.records()[0].data() == "abc");
}

TEST_CASE("the escape of half a surrogate pair arrives as U+FFFD, and is reported",
          "[protocol][P8]") {
  const std::string batch =
      R"({"action":"processRecords","records":[{"data":"YWJj","partitionKey":"a\ud800z",)"
      R"("sequenceNumber":"1","approximateArrivalTimestamp":1,"subSequenceNumber":0}],)"
      R"("millisBehindLatest":0})";
  // The daemon's form, and one that the fast path does not take.
  for (const std::string& text : {batch, " " + batch}) {
    const decoded_line line(text);
    REQUIRE_FALSE(line.is_error());
    REQUIRE(line.records().size() == 1);
    CHECK(line.replaced_invalid_utf8());
    CHECK(line.records()[0].partition_key() == "a\xEF\xBF\xBDz");
    CHECK(line.records()[0].data() == "abc");
  }
  const decoded_line shard(R"({"action":"initialize","shardId":"\udfff","sequenceNumber":"1"})");
  REQUIRE(shard.is<protocol::initialize>());
  CHECK(shard.as<protocol::initialize>().shard_id == "\xEF\xBF\xBD");
  CHECK(shard.replaced_invalid_utf8());
}

TEST_CASE("the name of a field may be written with escapes", "[protocol]") {
  const decoded_line line(R"({"acti\u006fn":"initialize","\u0073hardId":"a\/b"})");
  REQUIRE(line.is<protocol::initialize>());
  CHECK(line.as<protocol::initialize>().shard_id == "a/b");
}

TEST_CASE("each escape of JSON means its character", "[protocol]") {
  const decoded_line line(
      R"({"action":"initialize","shardId":"\"\\\/\b\f\n\r\t\u0000\uD83D\ude00\u20ac"})");
  REQUIRE(line.is<protocol::initialize>());
  CHECK(line.as<protocol::initialize>().shard_id ==
        std::string("\"\\/\b\f\n\r\t\0\xf0\x9f\x98\x80\xe2\x82\xac", 16));
  CHECK_FALSE(line.replaced_invalid_utf8());
}

TEST_CASE("only the escape of half a surrogate pair is replaced", "[protocol][P8]") {
  const auto shard_of = [](const std::string& text) {
    const decoded_line line(R"({"action":"initialize","shardId":")" + text + "\"}");
    REQUIRE(line.is<protocol::initialize>());
    return line.as<protocol::initialize>().shard_id;
  };
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(shard_of(R"(\ud83d\ud83d\ude00)") == mark + "\xf0\x9f\x98\x80");
  CHECK(shard_of(R"(\ude00\ud83d)") == mark + mark);
  CHECK(shard_of(R"(\ud83d\n)") == mark + "\n");
  CHECK(shard_of(R"(\\ud83d)") == R"(\ud83d)");
  CHECK(shard_of(R"(\\\ud83d)") == "\\" + mark);
}

TEST_CASE("a line of white space is blank, and nothing else is", "[protocol][P60]") {
  for (const char* line : {"", " ", "\t", "\r", " \t \r"}) CHECK(protocol::is_blank(line));
  for (const char* line : {"{}", " {", "x", "\v", "\f", "\xc2\xa0"})
    CHECK_FALSE(protocol::is_blank(line));
  CHECK_FALSE(protocol::is_blank(std::string_view("\0", 1)));
}

TEST_CASE("what is wrong is named, with its field", "[protocol]") {
  const auto record = [](const std::string& fields) {
    return R"({"action":"processRecords","records":[{"sequenceNumber":"1"},{)" + fields + "}]}";
  };
  struct bad {
    std::string line;
    std::string field;
    std::string what;
  };
  const bad bad_case = GENERATE_COPY(values<bad>({
      {"", "", "is empty"},
      {"   ", "", "is empty"},
      {"17", "", "is not a JSON object"},
      {"[]", "", "is not a JSON object"},
      {"{}", "action", "is missing"},
      {R"({"action":null})", "action", "is null"},
      {R"({"action":{}})", "action", "is not a string"},
      {R"({"action":"initialize"})", "shardId", "is missing"},
      {R"({"action":"initialize","shardId":null})", "shardId", "is null"},
      {R"({"action":"initialize","shardId":"s","sequenceNumber":"x"})", "sequenceNumber",
       "is neither a decimal number nor a sentinel"},
      {R"({"action":"initialize","shardId":"s","sequenceNumber":")" + std::string(200, '1') + "\"}",
       "sequenceNumber", "has 200 digits, more than 129"},
      {R"({"action":"initialize","shardId":"s","subSequenceNumber":-1})", "subSequenceNumber",
       "is not an integer from 0 on"},
      {R"({"action":"processRecords","records":null})", "records", "is not an array"},
      {R"({"action":"processRecords","records":[1]})", "records[0]", "is not an object"},
      {record(R"("sequenceNumber":"")"), "records[1].sequenceNumber", "is empty"},
      {record(R"("sequenceNumber":"-5")"), "records[1].sequenceNumber", "is not a decimal number"},
      {record(R"("sequenceNumber":"LATEST")"), "records[1].sequenceNumber",
       "is not a decimal number"},
      {record(R"("sequenceNumber":"2","data":5)"), "records[1].data", "is not a string"},
      {record(R"("sequenceNumber":"2","data":"YW=j")"), "records[1].data",
       "is not base64 at character 2"},
      {record(R"("sequenceNumber":"2","partitionKey":true)"), "records[1].partitionKey",
       "is not a string"},
      {record(R"("sequenceNumber":"2","partitionKey":"\q")"), "records[1].partitionKey",
       "is not valid JSON"},
      {record(R"("sequenceNumber":"2",,)"), "records[1]", "is not valid JSON"},
      {R"({"action":"processRecords","records":[{"sequenceNumber":"1"},{"data":"YQ)",
       "records[1].data", "is not valid JSON: it ends too early"},
      {R"({"action":"processRecords","records":[]}})", "", "has something after the JSON object"},
      {record(R"("sequenceNumber":"2","subSequenceNumber":1.5)"), "records[1].subSequenceNumber",
       "is not an integer from 0 on"},
      {R"({"action":"shutdown"})", "reason", "is missing"},
      {R"({"action":"checkpoint","error":5})", "error", "is not a string"},
  }));
  CAPTURE(bad_case.line);
  decoded_line line(bad_case.line);
  REQUIRE(line.is_error());
  CHECK(line.error().field == bad_case.field);
  CHECK(line.error().problem == bad_case.what);
}

TEST_CASE("a batch decodes as a plain JSON library would", "[protocol]") {
  std::mt19937 random(11);
  protocol::decoder decoder;
  for (int round = 0; round < 20; ++round) {
    nlohmann::json batch = {{"action", "processRecords"}, {"records", nlohmann::json::array()}};
    std::vector<std::string> payloads;
    const std::size_t count = round == 0 ? 10000 : random() % 200;
    for (std::size_t i = 0; i < count; ++i) {
      std::string payload(random() % 300, '\0');
      for (char& byte : payload) byte = static_cast<char>(random());
      payloads.push_back(payload);
      batch["records"].push_back(
          {{"action", "record"},
           {"data", test::base64(payload)},
           {"partitionKey", "key \"" + std::to_string(random()) + "\xc3\xa4"},
           {"sequenceNumber", std::to_string(1000000 + i)},
           {"approximateArrivalTimestamp", random()},
           {"subSequenceNumber", random() % 9}});
    }
    decoded_line line(batch.dump(), decoder);
    REQUIRE_FALSE(line.is_error());
    REQUIRE(line.records().size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& wanted = batch["records"][i];
      const record& got = line.records()[i];
      REQUIRE(got.data() == payloads[i]);
      REQUIRE(got.partition_key() == wanted["partitionKey"].get<std::string>());
      REQUIRE(got.sequence_number() == wanted["sequenceNumber"].get<std::string>());
      REQUIRE(got.sub_sequence_number() == wanted["subSequenceNumber"].get<std::uint64_t>());
      REQUIRE(got.approximate_arrival_timestamp()->time_since_epoch() ==
              milliseconds(wanted["approximateArrivalTimestamp"].get<std::int64_t>()));
    }
  }
}

namespace {

std::string status(std::string_view action) {
  std::string out;
  protocol::append_status(out, action);
  return out;
}

std::string checkpoint(const std::optional<sequence_position>& position) {
  std::string out;
  protocol::append_checkpoint(out, position);
  return out;
}

}  // namespace

TEST_CASE("a status line has just these bytes", "[protocol][P20][P3][P2]") {
  CHECK(status("initialize") == "\n{\"action\":\"status\",\"responseFor\":\"initialize\"}\n");
}

TEST_CASE("a checkpoint line has just these bytes, always with the pair", "[protocol][P20][P21]") {
  CHECK(checkpoint(sequence_position("0123", 45)) ==
        "\n{\"action\":\"checkpoint\",\"sequenceNumber\":\"0123\",\"subSequenceNumber\":45}\n");
  CHECK(checkpoint(sequence_position(std::string(129, '9'), UINT64_MAX)) ==
        "\n{\"action\":\"checkpoint\",\"sequenceNumber\":\"" + std::string(129, '9') +
            "\",\"subSequenceNumber\":18446744073709551615}\n");
}

TEST_CASE("the null checkpoint has two nulls", "[protocol][P22]") {
  CHECK(checkpoint(std::nullopt) ==
        "\n{\"action\":\"checkpoint\",\"sequenceNumber\":null,\"subSequenceNumber\":null}\n");
}

TEST_CASE("the name of an unknown action comes back as it was", "[protocol]") {
  const std::string name =
      GENERATE(as<std::string>(), "", "a\"b\\c", "tab\there", "\x01\x7f", "gr\xc3\xbc\xc3\x9f",
               "line\nbreak", "leaseLost", "a~b", "a_b", "a0");
  const std::string line = status(name);
  CHECK(std::count(line.begin(), line.end(), '\n') == 2);
  CHECK(nlohmann::json::parse(line).at("responseFor").get<std::string>() == name);
}

// Numbers at the edge of what they may be, and what a bad line leaves.
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
