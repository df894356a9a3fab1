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
  CHECK(limiter.take_left_out() ==
        strings{"checkpoint 26 failed (16 more like this were left out)"});
  CHECK(limiter.take_left_out().empty());

  passed(limiter, 11, start);
  CHECK(limiter.take_left_out() == strings{"checkpoint 10 failed"});
}

TEST_CASE("errors and infos all pass", "[driver][log]") {
  log_limiter limiter;
  CHECK(passed(limiter, 100, start, log_level::error).size() == 100);
  CHECK(passed(limiter, 100, start, log_level::info).size() == 100);
}

TEST_CASE("warnings that differ in letters are limited, too, and each is written or counted",
          "[driver][log]") {
  log_limiter limiter;
  std::size_t written = 0;
  std::size_t left_out = 0;
  const auto add = [&](const std::string& one) {
    ++written;
    const auto count = one.find(" (");
    if (count != std::string::npos) left_out += std::stoul(one.substr(count + 2));
  };
  constexpr std::size_t repeats = 3;
  constexpr std::size_t kinds = 26 * 26;
  for (int minute = 0; minute < 3; ++minute) {
    const std::size_t before = written;
    for (std::size_t i = 0; i < kinds * repeats; ++i) {
      const std::string name{static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26 % 26),
                             static_cast<char>('a' + minute)};
      const auto passed =
          limiter.pass(log_level::warning, name, start + std::chrono::minutes(minute));
      if (passed) add(*passed);
    }
    CHECK(written - before < 300);
  }
  for (const std::string& one : limiter.take_left_out()) add(one);
  CHECK(written + left_out == 3 * kinds * repeats);
}

}  // namespace kclxx::driver
