// SPDX-License-Identifier: Apache-2.0
// Records that left the stream before the worker came: when the child tells of them, and when not.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"
#include "unit/processing/processing_support.hpp"

using namespace kclxx;
using namespace std::chrono_literals;
using milliseconds = std::chrono::milliseconds;

namespace {

constexpr milliseconds start{1'600'000'000'000};  // of the kit's clock: 2020-09-13T12:26:40Z

/// A sequence number as Kinesis makes them: hexadecimal digits, of which the first and the last are
/// the version and nine are the seconds. `count` is in the digits between.
std::string number_at(milliseconds time, std::uint64_t count = 0) {
  std::array<unsigned, 47> digits{};  // the lowest one first
  digits.front() = digits.back() = 2;
  for (std::size_t i = 1; i < 9; ++i, count /= 16) digits.at(i) = count % 16;
  auto seconds = static_cast<std::uint64_t>(time / 1s);
  for (std::size_t i = 9; i < 18; ++i, seconds /= 16) digits.at(i) = seconds % 16;
  std::string text;
  for (int i = 0; i < 56; ++i) {
    unsigned remainder = 0;
    for (std::size_t place = digits.size(); place-- > 0;) {
      remainder = remainder * 16 + digits.at(place);
      digits.at(place) = remainder / 10;
      remainder %= 10;
    }
    text.insert(text.begin(), static_cast<char>('0' + remainder));
  }
  return text;
}

/// A worker that gets its shard at the kit's start.
struct initialized_worker {
  explicit initialized_worker(std::optional<milliseconds> retention)
      : worker([](const record_batch&) {}, {.retention = retention, .observers = {seen}}) {}
  /// A record that has arrived so long ago.
  void deliver(milliseconds age) {
    const std::string number = number_at(start - age, 1);
    worker.deliver_records(
        {{.data = "x", .sequence_number = number, .approximate_arrival_timestamp = start - age}});
  }

  std::shared_ptr<test::seen_events> seen = std::make_shared<test::seen_events>();
  testing::worker worker;
};

constexpr std::optional<milliseconds> unknown = std::nullopt;

}  // namespace

TEST_CASE("a stored position that is older than the retention is told of with the first record",
          "[testing][gap]") {
  initialized_worker of_the_shard(24h);
  auto& worker = of_the_shard.worker;
  const auto& gaps = of_the_shard.seen->gaps;
  const sequence_position stored(number_at(start - 30h));
  worker.initialize("shard-0", stored).deliver({});
  CHECK(gaps.empty());
  of_the_shard.deliver(24h - 1min);
  using date = std::chrono::system_clock::time_point;
  const observer::gap_suspected expected{.start_position = stored,
                                         .stored_arrival = date(start - 30h),
                                         .first_arrival = date(start - 24h + 1min),
                                         .stored_age = 30h,
                                         .retention = 24h};
  CHECK(gaps == std::vector{expected});
  of_the_shard.deliver(23h);
  CHECK(gaps.size() == 1);
  REQUIRE(worker.log().size() == 1);
  const log_entry& line = worker.log().front();
  CHECK(line.level == log_level::error);
  CHECK(line.position == stored);
  for (const char* fact : {"2020-09-12T06:26:40.000Z", "2020-09-12T12:27:40.000Z", "6 h", "24 h"}) {
    CHECK(test::contains(line.text, fact));
  }
}

TEST_CASE(
    "a gap is suspected if the first record is about as old as the retention; none is if nothing "
    "is "
    "lost, or the shard was idle",
    "[testing][gap]") {
  struct start_of_a_worker {
    const char* what;
    std::optional<milliseconds> retention;
    milliseconds stored_age;
    milliseconds first_age;
    bool is_gap;
  };
  const auto sample = GENERATE(values<start_of_a_worker>({
      {"it was away for little longer than the retention", 24h, 24h + 2min, 24h, true},
      {"the shard has few records", 24h, 240h, 13h, true},
      {"a long retention", 168h, 1000h, 167h, true},
      {"Kinesis' default", unknown, 30h, 24h, true},
      {"a record that is older than the default", unknown, 1000h, 24h + 30min, true},
      {"a record that is younger than the default", unknown, 1000h, 24h - 30min, true},
      {"a short pause", 24h, 5min, 4min, false},
      {"the position is within the retention", 24h, 24h, 24h - 1s, false},
      {"a longer retention", 168h, 72h, 71h, false},
      {"an idle shard: a record comes once the worker is there", 24h, 240h, -1min, false},
      {"an idle shard: a record came while the worker was away", 24h, 240h, 1h, false},
      {"an idle shard, and the retention is not known", unknown, 240h, 1h, false},
      {"the worker is far behind, and the retention is not known", unknown, 72h, 72h - 1s, false},
      {"it is as far behind as the default retention", unknown, 25h + 1min, 25h, false},
      {"it has come a bit more than the default retention later", unknown, 24h + 30min, 24h, false},
      {"the stream keeps records for longer than is said", 24h, 72h, 72h - 1s, false},
  }));
  CAPTURE(sample.what);
  initialized_worker of_the_shard(sample.retention);
  auto& worker = of_the_shard.worker;
  worker.initialize("shard-0", sequence_position(number_at(start - sample.stored_age)));
  of_the_shard.deliver(sample.first_age);
  const auto& gaps = of_the_shard.seen->gaps;
  REQUIRE(gaps.size() == (sample.is_gap ? 1 : 0));
  REQUIRE(worker.log().size() == gaps.size());
  if (!sample.is_gap) return;
  const bool is_assumed = !sample.retention;
  CHECK(gaps.front().is_retention_assumed == is_assumed);
  CHECK(worker.log().front().level == (is_assumed ? log_level::warning : log_level::error));
}

TEST_CASE("no gap is suspected where there is no stored position, or no time is known",
          "[testing][gap]") {
  const std::string number = number_at(start - 24h);
  initialized_worker of_the_shard(24h);
  auto& worker = of_the_shard.worker;
  SECTION("a new application, and a child shard") {
    worker.initialize("shard-0",
                      sequence_position(GENERATE("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP")));
    of_the_shard.deliver(24h);
  }
  SECTION("the stored sequence number has no time") {
    worker.initialize("shard-0", sequence_position("100"));
    of_the_shard.deliver(24h);
  }
  SECTION("the first record has no time") {
    worker.initialize("shard-0", sequence_position(number_at(start - 30h)));
    worker.deliver_records({{.data = "x", .sequence_number = '1' + number}});
  }
  CHECK(of_the_shard.seen->gaps.empty());
  CHECK(worker.log().empty());
}

TEST_CASE("a record without an arrival has the one that its sequence number encodes",
          "[testing][gap]") {
  initialized_worker of_the_shard(24h);
  of_the_shard.worker.initialize("shard-0", sequence_position(number_at(start - 30h)));
  const std::string number = number_at(start - 24h);
  of_the_shard.worker.deliver_records({{.data = "x", .sequence_number = number}});
  CHECK(of_the_shard.seen->gaps.size() == 1);
}

TEST_CASE("a successor at a position that was stored since is told of no gap again",
          "[testing][gap]") {
  initialized_worker of_the_shard(24h);
  of_the_shard.worker.initialize("shard-0", sequence_position(number_at(start - 30h)));
  of_the_shard.deliver(24h - 1min);
  CHECK(of_the_shard.seen->gaps.size() == 1);
  of_the_shard.worker.crash().resume();
  of_the_shard.deliver(12h);
  CHECK(of_the_shard.seen->gaps.size() == 1);
}
