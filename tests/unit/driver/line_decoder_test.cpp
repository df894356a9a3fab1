// SPDX-License-Identifier: Apache-2.0
#include "driver/line_decoder.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "support/catch.hpp"

using kclxx::driver::batch_memory;
using kclxx::driver::line_decoder;

namespace {

std::shared_ptr<batch_memory> memory_with(std::string_view text) {
  auto memory = std::make_shared<batch_memory>();
  memory->line.grow(text.size());
  text.copy(memory->line.data(), text.size());
  return memory;
}

auto decode(line_decoder& decoder, std::string_view text) {
  return decoder.decode(memory_with(text), text.size());
}

std::string error_of(line_decoder& decoder, std::string_view text) {
  const auto result = decode(decoder, text);
  const auto* bad = std::get_if<line_decoder::bad_line>(&result);
  return bad == nullptr ? "none" : bad->text;
}

/// A batch of one record whose data, in base64, is of this length.
std::string batch_line(std::size_t length, std::string_view end = "}]}") {
  return R"({"action":"processRecords","records":[{"sequenceNumber":"1","data":")" +
         std::string(length, 'A') + "\"" + std::string(end);
}

}  // namespace

TEST_CASE("a batch keeps the memory of its line alive", "[driver]") {
  line_decoder decoder;
  auto memory = memory_with(batch_line(4));
  const std::weak_ptr<batch_memory> watched = memory;
  auto result = decoder.decode(std::move(memory), batch_line(4).size());
  auto batch = std::get<line_decoder::decoded>(result).batch;
  result = line_decoder::blank{};
  REQUIRE(batch.size() == 1);
  CHECK(batch.front().data() == std::string_view("\0\0\0", 3));
  CHECK_FALSE(watched.expired());
  batch = {};
  CHECK(watched.expired());
}

TEST_CASE("a long line of blanks has no message either, when it arrives in pieces",
          "[driver][P60]") {
  line_decoder decoder;
  const std::string blanks(400, ' ');
  auto memory = memory_with(blanks);
  CHECK_FALSE(decoder.read_ahead({memory->line.data(), 300}, *memory));
  CHECK(std::holds_alternative<line_decoder::blank>(
      decoder.decode(std::move(memory), blanks.size())));
  CHECK(std::holds_alternative<line_decoder::decoded>(decode(decoder, batch_line(4))));
}

TEST_CASE("what is wrong with a line names the field and shows the line's beginning",
          "[driver][P54]") {
  line_decoder decoder;
  CHECK(error_of(decoder, R"({"action":"initialize"})") ==
        R"(bad line from the daemon: shardId is missing; the line has 23 bytes and begins: )"
        R"({"action":"initialize"})");
  SECTION("with what is not printable escaped, and cut short") {
    CHECK(error_of(decoder, "\x01\xff{\"a").find("begins: \\x01\\xff{\"a") != std::string::npos);
    const std::string text = error_of(decoder, std::string(500, 'x'));
    CHECK(text.find("has 500 bytes and begins: " + std::string(120, 'x') + "...") !=
          std::string::npos);
    CHECK(error_of(decoder, std::string(120, 'x')).ends_with(std::string(120, 'x')));
  }
  SECTION("as it was before decoding rewrote it") {
    const std::string line = batch_line(200, "},{\"sequenceNumber\":7}]}");
    CHECK(error_of(decoder, line).find("begins: " + line.substr(0, 120) + "...") !=
          std::string::npos);
  }
  SECTION("and before it was read ahead") {
    const auto data_of = [](std::size_t length) {
      return "{\"data\":\"" + std::string(length, 'A') +
             R"(","partitionKey":"k","sequenceNumber":"1",)"
             R"("approximateArrivalTimestamp":1,"subSequenceNumber":0},)";
    };
    const std::string line = R"({"action":"processRecords","records":[)" + data_of(100) +
                             data_of(200) + R"({"sequenceNumber":7}]})";
    auto memory = memory_with(line);
    CHECK_FALSE(decoder.read_ahead({memory->line.data(), 119}, *memory));
    CHECK(decoder.read_ahead({memory->line.data(), 300}, *memory));
    CHECK(decoder.read_ahead({memory->line.data(), 350}, *memory));
    const auto result = decoder.decode(std::move(memory), line.size());
    CHECK(std::get<line_decoder::bad_line>(result).text.find("begins: " + line.substr(0, 120) +
                                                             "...") != std::string::npos);
  }
}

TEST_CASE("a line over the limit is reported with the limit and its beginning", "[driver][P54]") {
  line_decoder decoder;
  const std::string line = batch_line(200);
  CHECK(decoder.too_long(line.data(), line.size(), 100).text ==
        "bad line from the daemon: it is longer than the limit of 100 bytes "
        "(run_options::max_line_length) and begins: " +
            line.substr(0, 120) + "...");
}
