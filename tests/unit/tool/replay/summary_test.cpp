// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/summary.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "support/catch.hpp"
#include "tool/text.hpp"

using kclxx::sequence_position;
using namespace kclxx::replay;
using namespace std::chrono_literals;

namespace {

span batch(std::chrono::nanoseconds begin) {
  span interval{"processRecords"};
  interval.repeats = true;
  interval.begin = begin;
  interval.end = begin + 1us;
  interval.callback = 1us;
  return interval;
}

}  // namespace

TEST_CASE("a checkpoint inside a batch counts as the batch before", "[replay][timeline]") {
  timeline replay;
  replay.deliver(sequence_position("10"), 5);
  replay.deliver(sequence_position("20"), 9);
  replay.persist(sequence_position("19"));
  replay.add_checkpoint(false);
  replay.add(batch(0ns));
  replay.persist(sequence_position("SHARD_END"));
  replay.add_checkpoint(true);
  replay.add_checkpoint(false);
  replay.add(batch(1ms));
  REQUIRE(replay.spans().size() == 2);
  CHECK(replay.spans()[0].delivered == 9);
  CHECK(replay.spans()[0].persisted == 5);
  CHECK(replay.spans()[0].checkpoints == 1);
  CHECK(replay.spans()[1].persisted == 9);
  CHECK(replay.spans()[1].failed_checkpoints == 1);
}

TEST_CASE("any number of batches is shown in few spans, with their sums and extremes",
          "[replay][timeline]") {
  timeline replay;
  replay.add(span{"initialize"});
  constexpr std::uint64_t count = 100'000;
  for (std::uint64_t i = 1; i <= count; ++i) {
    replay.deliver(sequence_position(std::to_string(i)), i);
    if (i % 10 == 0) replay.add_checkpoint(false);
    span interval = batch(std::chrono::nanoseconds(i * 1000));
    if (i == 777) interval.callback = 3s;
    interval.behind = std::chrono::milliseconds(count - i);
    replay.add(std::move(interval));
  }
  replay.persist(sequence_position(std::to_string(count / 2)));
  replay.add(span{"leaseLost"});
  const auto kept = replay.spans();
  CHECK(kept.size() > 1900);
  CHECK(kept.size() < 2100);
  CHECK(kept.front().action == "initialize");
  CHECK(kept.back().action == "leaseLost");
  CHECK(kept.back().delivered == count);
  CHECK(kept.back().persisted == count / 2);
  // No part of the course is coarser than another.
  CHECK(kept[kept.size() / 2].delivered > count / 2 - 200);
  CHECK(kept[kept.size() / 2].delivered < count / 2 + 200);
  std::uint64_t checkpoints = 0;
  std::chrono::nanoseconds longest{};
  for (const span& interval : kept) {
    checkpoints += interval.checkpoints;
    longest = std::max(longest, interval.callback);
  }
  CHECK(checkpoints == count / 10);
  CHECK(longest == 3s);
  CHECK(kept[1].behind == std::chrono::milliseconds(count - 1));
}

TEST_CASE("a quantile counts from the smallest duration, and is zero without a duration",
          "[replay]") {
  durations measured;
  CHECK(measured.quantile(0.5) == 0ns);
  CHECK(measured.max() == 0ns);
  durations slow;
  for (int i = 100; i > 98; --i) slow.add(i * 1us);
  for (int i = 0; i < 97; ++i) measured.add(10ns);
  measured.add(-7ns);  // a clock's odd span
  measured.add(slow);
  CHECK(measured.count() == 100);
  CHECK(measured.quantile(0.01) == 0ns);
  CHECK(measured.quantile(0.5) == 10ns);
  CHECK(measured.quantile(0.98) == 10ns);
  CHECK(measured.quantile(0.99) == 99us);
  CHECK(measured.max() == 100us);
}

TEST_CASE("a duration has three digits and the unit that fits", "[tool]") {
  CHECK(kclxx::tool::to_text(0ns) == "0 s");
  CHECK(kclxx::tool::to_text(999ns) == "999 ns");
  CHECK(kclxx::tool::to_text(18'432ns) == "18.4 us");
  CHECK(kclxx::tool::to_text(200ms) == "200 ms");
  CHECK(kclxx::tool::to_text(1500ms) == "1.5 s");
  CHECK(kclxx::tool::to_text(90s) == "90 s");
  CHECK(kclxx::tool::to_text(20min) == "20 min");
  CHECK(kclxx::tool::to_text(11h) == "11 h");
}
