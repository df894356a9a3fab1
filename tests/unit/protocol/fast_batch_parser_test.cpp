// SPDX-License-Identifier: Apache-2.0
// What the fast path gives must be what the decoder gives. White space at the beginning of a line
// hands it over to the decoder.
#include "protocol/fast_batch_parser.hpp"

#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/decoded_line.hpp"

using namespace kclxx;
using test::decoded_line;
using test::same;

namespace {

std::string record_of(const std::string& data, const std::string& key, const std::string& number,
                      const std::string& time = "1600000000000", const std::string& sub = "0") {
  return R"({"data":)" + data + R"(,"partitionKey":)" + key + R"(,"sequenceNumber":)" + number +
         R"(,"approximateArrivalTimestamp":)" + time + R"(,"subSequenceNumber":)" + sub +
         R"(,"action":"record"})";
}

std::string batch_of(const std::vector<std::string>& records) {
  std::string line(protocol::fast_batch_parser::prologue);
  for (std::size_t i = 0; i < records.size(); ++i) line += (i > 0 ? "," : "") + records[i];
  return line + R"(],"millisBehindLatest":12})";
}

const std::string long_data =
    "\"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg==\"";
std::string answer_of(const std::string& number, const std::string& sub = "0",
                      const std::string& error = "null") {
  return R"({"action":"checkpoint","sequenceNumber":)" + number + R"(,"subSequenceNumber":)" + sub +
         R"(,"error":)" + error + "}";
}

const std::string digits = R"("49590338271490256608559692538361571095921575989136588898")";

/// As Jackson writes them.
std::vector<std::string> usual_batches() {
  return {
      batch_of({record_of(long_data, R"("key-1")", digits)}),
      batch_of({record_of(long_data, R"("key-1")", R"("7")"),
                record_of(R"("YQ==")", R"("")", R"("8")", "0", "17"),
                record_of(R"("")", R"("a key that is longer than a word")", R"("9")")}),
      batch_of({record_of("null", "null", R"("3")", "null", "null"),
                record_of(long_data, "\"k\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"", R"("0")")}),
      batch_of({}),
      R"({"action":"processRecords","records":[{"data":"YWJj","partitionKey":"k",)"
      R"("sequenceNumber":"1","approximateArrivalTimestamp":1,"subSequenceNumber":0},)"
      R"({"data":"YWI=","partitionKey":"k","sequenceNumber":"2",)"
      R"("approximateArrivalTimestamp":1,"subSequenceNumber":1}],"millisBehindLatest":null})",
  };
}

std::vector<std::string> usual_lines() {
  std::vector<std::string> lines = usual_batches();
  lines.push_back(answer_of(digits));
  lines.push_back(answer_of(R"("017")", "18"));
  return lines;
}

/// Between the line with and without white space before it.
std::string difference(const std::string& line) {
  return test::difference(decoded_line(line), decoded_line(" " + line));
}

/// A change such as a hostile or a newer daemon might make.
void change(std::string& line, std::mt19937& random) {
  static const std::vector<std::string> pieces{"\"",
                                               "\\",
                                               "{",
                                               "}",
                                               "[",
                                               "]",
                                               ",",
                                               ":",
                                               " ",
                                               "null",
                                               "0",
                                               "-1",
                                               "1.5",
                                               "1e3",
                                               "\\u00e4",
                                               "\\ud800",
                                               "\\ud83d\\ude00",
                                               "\\/",
                                               "=",
                                               "==",
                                               "\n",
                                               "\t",
                                               "//",
                                               "\xff",
                                               "\xc3",
                                               "99999999999999999999",
                                               "01",
                                               "}]",
                                               "},",
                                               "],",
                                               R"("x":{"a":[1,"]"]},)",
                                               R"("records":[],)",
                                               R"("data":"YQ==",)",
                                               R"(,"action":"record")"};
  const std::size_t at = random() % (line.size() + 1);
  const std::size_t length = std::min<std::size_t>(random() % 4, line.size() - at);
  switch (random() % 6) {
    case 0:
      line.insert(at, pieces[random() % pieces.size()]);
      break;
    case 1:
      line.replace(at, length, pieces[random() % pieces.size()]);
      break;
    case 2:
      line.erase(at, length);
      break;
    case 3:
      if (at < line.size()) line[at] = static_cast<char>(random());
      break;
    case 4:
      line.insert(at, line.substr(random() % line.size(), random() % 40));
      break;
    default:
      if (random() % 8 == 0) line.resize(at);
  }
  if (line.empty()) line = "{";
}

}  // namespace

TEST_CASE("the daemon's form of a batch is read to its end", "[protocol][fast_batch_parser]") {
  for (std::string line : usual_batches()) {
    CAPTURE(line);
    const std::size_t length = line.size();
    line.append(protocol::decoder::padding, '\0');
    std::vector<record> records;
    CHECK(protocol::fast_batch_parser().finish(line.data(), length, records).is_whole);
  }
}

TEST_CASE("the daemon's form means what the decoder takes it for",
          "[protocol][fast_batch_parser]") {
  for (const std::string& line : usual_lines()) {
    CAPTURE(line);
    CHECK(difference(line).empty());
    CHECK_FALSE(decoded_line(line).is_error());
  }
}

TEST_CASE("the daemon's form ends where a number is too long", "[protocol][fast_batch_parser]") {
  for (const std::size_t length : {128U, 129U, 200U}) {
    const std::string number = '"' + std::string(length, '7') + '"';
    CHECK(difference(batch_of({record_of("null", "null", number)})).empty());
  }
  for (const char* number : {"9223372036854", "9223372036855", "999999999999999999",
                             "9999999999999999999", "00", "1.0"}) {
    CAPTURE(number);
    CHECK(difference(batch_of({record_of("null", "null", digits, number)})).empty());
    CHECK(difference(batch_of({record_of("null", "null", digits, "0", number)})).empty());
  }
}

TEST_CASE("a form that the daemon does not write is left to the decoder",
          "[protocol][fast_batch_parser][P13]") {
  const std::string other =
      R"({"action":"record","data":"YWJj","partitionKey":"k","sequenceNumber":"1",)"
      R"("approximateArrivalTimestamp":1,"subSequenceNumber":0})";
  std::string line = batch_of({other});
  CHECK(difference(line).empty());
  CHECK(decoded_line(line).records().size() == 1);
  const std::size_t length = line.size();
  line.append(protocol::decoder::padding, '\0');
  std::vector<record> records;
  CHECK_FALSE(protocol::fast_batch_parser().finish(line.data(), length, records).is_whole);
  CHECK(records.empty());
}

TEST_CASE("a record that has another form is read by the decoder, and those before it stay",
          "[protocol][fast_batch_parser]") {
  const std::string usual = record_of(long_data, R"("key")", digits);
  const decoded_line line(batch_of({usual, record_of(R"("YW\/j")", R"("\u00e4")", R"("2")"),
                                    R"({"sequenceNumber":"3","more":[{}],"data":null})", usual}));
  REQUIRE_FALSE(line.is_error());
  REQUIRE(line.records().size() == 4);
  CHECK(line.records()[0].data() == line.records()[3].data());
  CHECK(line.records()[0].sequence_number() == digits.substr(1, digits.size() - 2));
  CHECK(line.records()[1].data() == "ao\xe3");
  CHECK(line.records()[1].partition_key() == "\xc3\xa4");
  CHECK_FALSE(line.records()[2].has_data());
  CHECK(line.as<protocol::process_records>().largest == line.records()[0].position());
  CHECK(line.as<protocol::process_records>().millis_behind_latest->count() == 12);
}

TEST_CASE("an error names the record by its place in the batch, whichever reader finds it",
          "[protocol][fast_batch_parser]") {
  const std::string usual = record_of(long_data, R"("key")", digits);
  const decoded_line line(
      batch_of({usual, usual, record_of(R"("YWJjYWJjYWJjYWJj!WJj")", "null", digits)}));
  REQUIRE(line.is_error());
  CHECK(line.error().field == "records[2].data");
  CHECK(line.error().problem == "is not base64 at character 16");
}

TEST_CASE("a line that was changed anywhere means the same to both readers",
          "[protocol][fast_batch_parser]") {
  std::mt19937 random(21);
  const std::vector<std::string> lines = usual_lines();
  for (int round = 0; round < 40000; ++round) {
    std::string line = lines[random() % lines.size()];
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) change(line, random);
    const std::string found = difference(line);
    if (found.empty()) continue;
    CAPTURE(line, found);
    FAIL("the readers disagree");
  }
}

TEST_CASE("a line that is read while it arrives means the same as the whole line",
          "[protocol][fast_batch_parser]") {
  std::mt19937 random(22);
  const std::vector<std::string> lines = usual_lines();
  protocol::decoder decoder;
  for (int round = 0; round < 40000; ++round) {
    std::string line = lines[random() % lines.size()];
    for (std::size_t changes = random() % 3; changes > 0; --changes) change(line, random);
    if (line.back() == '\r') continue;
    const std::string whole = " " + line;
    if (random() % 4 == 0) line += '\r';
    std::vector<std::size_t> sizes;
    const std::size_t most = 1 + random() % line.size();
    for (std::size_t at = 1 + random() % most; at <= line.size(); at += 1 + random() % most) {
      sizes.push_back(at);
    }
    const std::string found =
        test::difference(decoded_line(line, decoder, sizes), decoded_line(whole));
    if (found.empty()) continue;
    CAPTURE(line, sizes, found);
    FAIL("the readers disagree");
  }
}

TEST_CASE("a line may break off inside data with a carriage return before its newline arrives",
          "[protocol][fast_batch_parser][P7]") {
  const std::string line = std::string(protocol::fast_batch_parser::prologue) + R"({"data":"QUJD)";
  protocol::decoder decoder;
  const std::string arriving = line + '\r';
  const std::string found = test::difference(decoded_line(arriving, decoder, {arriving.size()}),
                                             decoded_line(" " + line));
  CHECK(found.empty());
}

TEST_CASE("a record is read as soon as it and the next one's beginning are there",
          "[protocol][fast_batch_parser]") {
  const std::string text = record_of(long_data, R"("key")", digits);
  std::string line = batch_of({text, text, text});
  const std::size_t beginning = protocol::fast_batch_parser::prologue.size();
  std::vector<record> records;
  protocol::fast_batch_parser reader;
  std::string memory;
  for (std::size_t size = 0; size < beginning + 3 * text.size(); ++size) {
    CAPTURE(size);
    std::string moved = line.substr(0, size) + std::string(reader.look_ahead, '\0');
    std::swap(memory, moved);
    reader.read_ahead(memory.data(), size, records);
    line.replace(0, size, memory, 0, size);
    CHECK(records.size() == (size <= beginning ? 0 : (size - beginning - 1) / (text.size() + 1)));
  }
  REQUIRE(records.size() == 2);
  CHECK(records[0].data() == decoded_line(batch_of({text})).records()[0].data());
  CHECK(same(records[0], records[1]));
}

TEST_CASE("the answer to a checkpoint that succeeded is read without the decoder",
          "[protocol][fast_batch_parser]") {
  const auto parsed = [](std::string line) {
    const std::size_t length = line.size();
    line.append(protocol::fast_batch_parser::look_ahead, '\0');
    return protocol::parse_success(line.data(), length);
  };
  const auto answer = parsed(answer_of(R"("101")", "7"));
  REQUIRE(answer);
  CHECK(answer->position == sequence_position("101", 7));
  CHECK(!answer->error);
  for (const std::string& line :
       {answer_of("null", "null"), answer_of(R"("TRIM_HORIZON")"), answer_of(R"("101")", "01"),
        answer_of(R"("101")", "0", R"("ThrottlingException")"), answer_of(R"("101")") + " ",
        batch_of({})}) {
    CAPTURE(line);
    CHECK(!parsed(line));
    CHECK(difference(line).empty());
  }
}
