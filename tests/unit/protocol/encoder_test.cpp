// SPDX-License-Identifier: Apache-2.0
#include "protocol/encoder.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace kclxx::protocol;
using kclxx::sequence_position;

namespace {

std::string status(std::string_view action) {
  std::string out;
  append_status(out, action);
  return out;
}

std::string checkpoint(const std::optional<sequence_position>& position) {
  std::string out;
  append_checkpoint(out, position);
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
