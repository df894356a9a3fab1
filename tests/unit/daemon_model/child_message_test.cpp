// SPDX-License-Identifier: Apache-2.0
#include "daemon_model/child_message.hpp"

#include <string>

#include "support/catch.hpp"

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

TEST_CASE("a fraction loses what follows its point, however small it is", "[daemon_model]") {
  CHECK(checkpoint_with_sub("7.9") == child_message(child_checkpoint{"1", 7}));
  CHECK(checkpoint_with_sub("-7.9") == child_message(child_checkpoint{"1", -7}));
  CHECK(checkpoint_with_sub("1e-400") == child_message(child_checkpoint{"1", 0}));
  CHECK(checkpoint_with_sub("5e-324") == child_message(child_checkpoint{"1", 0}));
}

TEST_CASE("a number beyond a Java long makes the daemon ignore the line", "[daemon_model]") {
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
}
