// SPDX-License-Identifier: Apache-2.0
// Which handlers are stuck, and when that is reported.
#include "processing/handlers_in_progress.hpp"

#include <optional>

#include "support/catch.hpp"

using kclxx::processing::handlers_in_progress;
using namespace std::chrono_literals;

namespace {
const handlers_in_progress::time_point added{};
}

TEST_CASE("a handler is reported after the limit, then after twice the time", "[processing]") {
  handlers_in_progress handlers(60s);
  CHECK(handlers.next_due() == std::nullopt);
  const auto one = handlers.add(7, 1, added);
  CHECK(handlers.stuck_at(added) == added + 60s);
  CHECK(handlers.next_due() == added + 60s);
  CHECK(handlers.take_due(added + 59s).empty());
  CHECK(handlers.take_due(added + 60s).size() == 1);
  CHECK(handlers.stuck() == 1);
  CHECK(handlers.take_due(added + 60s).empty());
  CHECK(handlers.next_due() == added + 120s);
  CHECK(handlers.take_due(added + 120s).size() == 1);
  CHECK(handlers.next_due() == added + 240s);
  CHECK(handlers.stuck() == 1);
  CHECK(handlers.find(one)->record_number == 7);
  handlers.remove(one);
  CHECK(handlers.stuck() == 0);
  CHECK(handlers.next_due() == std::nullopt);
}

TEST_CASE("the shortest limit is a millisecond", "[processing]") {
  handlers_in_progress handlers(1ms);
  handlers.add(7, 1, added);
  CHECK(handlers.stuck_at(added) == added + 1ms);
  CHECK(handlers.next_due() == added + 1ms);
}

TEST_CASE(
    "a handler that has ended is not running, and stuck only while its record is being parked",
    "[processing]") {
  handlers_in_progress handlers(60s);
  const auto one = handlers.add(7, 1, added);
  CHECK(handlers.running() == 1);
  handlers.fail(*handlers.find(one));
  CHECK(handlers.running() == 0);
  CHECK(handlers.size() == 1);
  CHECK(handlers.next_due() == std::nullopt);
  handlers.begin_parking(one, added + 10s);
  CHECK(handlers.next_due() == added + 70s);
}

TEST_CASE("the name of an attempt is not used again", "[processing]") {
  handlers_in_progress handlers(60s);
  const auto first = handlers.add(7, 1, added);
  handlers.remove(first);
  const auto second = handlers.add(7, 2, added);
  CHECK(second.place == first.place);
  CHECK(handlers.find(first) == nullptr);
  CHECK(handlers.find(second)->number == 2);
  CHECK(handlers.size() == 1);
  handlers.remove(second);
  handlers.clear();
  CHECK(handlers.size() == 0);
  CHECK(handlers.find(second) == nullptr);
}

TEST_CASE("reports end before a time overflows, and a limit of 0 means none", "[processing]") {
  handlers_in_progress handlers(60s);
  handlers.add(7, 1, added);
  auto due = handlers.next_due();
  int reports = 0;
  for (; due; due = handlers.next_due(), ++reports) CHECK(handlers.take_due(*due).size() == 1);
  CHECK(reports == 23);
  handlers_in_progress never(0s);
  never.add(7, 1, added);
  CHECK(never.next_due() == std::nullopt);
  CHECK(never.stuck_at(added) == std::nullopt);
}

TEST_CASE("a limit of more than ten years is ten years", "[processing]") {
  const handlers_in_progress handlers(std::chrono::milliseconds::max());
  CHECK(handlers.stuck_at(added) == added + 24h * 365 * 10);
}
