// SPDX-License-Identifier: Apache-2.0
#include "driver/log_limiter.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace kclxx::driver {

namespace {

using namespace std::chrono_literals;
using strings = std::vector<std::string>;

const log_limiter::time_point start{1h};

std::string text(int number) { return "checkpoint " + std::to_string(number) + " failed"; }

strings passed(log_limiter& limiter, int count, log_limiter::time_point now,
               log_level level = log_level::warning) {
  strings result;
  for (int i = 0; i < count; ++i) {
    if (auto one = limiter.pass(level, text(i), now)) result.push_back(*std::move(one));
  }
  return result;
}

}  // namespace

TEST_CASE("of warnings that differ in numbers only ten pass in a minute", "[driver][log]") {
  log_limiter limiter;
  CHECK(passed(limiter, 100, start).size() == 10);
  CHECK(passed(limiter, 100, start + 59s).empty());
  CHECK(limiter.pass(log_level::warning, "another one", start));
}

TEST_CASE("each kind of warning is counted separately", "[driver][log]") {
  log_limiter limiter;
  passed(limiter, 1, start);
  CHECK(limiter.pass(log_level::warning, "another one", start));
  CHECK(passed(limiter, 100, start).size() == 9);
  CHECK(limiter.pass(log_level::warning, "another one", start));
}

TEST_CASE("after the minute the next warning gives the number that was left out", "[driver][log]") {
  log_limiter limiter;
  passed(limiter, 27, start);
  CHECK(limiter.pass(log_level::warning, text(99), start + 60s) ==
        "checkpoint 99 failed (17 more like this were left out)");
  CHECK(limiter.pass(log_level::warning, text(100), start + 61s) == "checkpoint 100 failed");
  passed(limiter, 9, start + 61s);
  CHECK(limiter.pass(log_level::warning, text(99), start + 120s) ==
        "checkpoint 99 failed (1 more like this was left out)");
}

TEST_CASE("at the end the last of those left out is written, with their number", "[driver][log]") {
  log_limiter limiter;
  passed(limiter, 27, start);
  limiter.pass(log_level::warning, "another one", start);
  CHECK(limiter.rest() == strings{"checkpoint 26 failed (16 more like this were left out)"});
  CHECK(limiter.rest().empty());

  passed(limiter, 11, start);
  CHECK(limiter.rest() == strings{"checkpoint 10 failed"});
}

TEST_CASE("a number is part of the kind, wherever it is", "[driver][log]") {
  log_limiter limiter;
  for (int i = 0; i < 10; ++i) {
    CHECK(limiter.pass(log_level::warning, std::to_string(i) + " records", start));
  }
  CHECK_FALSE(limiter.pass(log_level::warning, "4711 records", start));
  CHECK(limiter.pass(log_level::warning, " records", start));
}

TEST_CASE("errors and infos all pass", "[driver][log]") {
  log_limiter limiter;
  CHECK(passed(limiter, 100, start, log_level::error).size() == 100);
  CHECK(passed(limiter, 100, start, log_level::info).size() == 100);
}

TEST_CASE("however many kinds of warnings come, few are remembered", "[driver][log]") {
  log_limiter limiter;
  std::string name;
  for (int i = 0; i < 10'000; ++i) {
    name += static_cast<char>('a' + i % 26);
    if (name.size() > 30) name.erase(0, 7);
    limiter.pass(log_level::warning, name + "?", start);
    for (int j = 0; j < 11; ++j) limiter.pass(log_level::warning, name, start);
  }
  CHECK(limiter.rest().size() == 32);  // of 64 kinds; the others were not left out
}

}  // namespace kclxx::driver
