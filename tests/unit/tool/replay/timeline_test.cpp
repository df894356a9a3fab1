// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/timeline.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "support/catch.hpp"

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
  timeline all;
  all.deliver(sequence_position("10"), 5);
  all.deliver(sequence_position("20"), 9);
  all.persist(sequence_position("19"));
  all.add_checkpoint(false);
  all.add(batch(0ns));
  all.persist(sequence_position("SHARD_END"));
  all.add_checkpoint(true);
  all.add_checkpoint(false);
  all.add(batch(1ms));
  REQUIRE(all.spans().size() == 2);
  CHECK(all.spans()[0].delivered == 9);
  CHECK(all.spans()[0].persisted == 5);
  CHECK(all.spans()[0].checkpoints == 1);
  CHECK(all.spans()[1].persisted == 9);
  CHECK(all.spans()[1].failed_checkpoints == 1);
}

TEST_CASE("any number of batches is kept in bounded memory, with their sums and extremes",
          "[replay][timeline]") {
  timeline all;
  all.add(span{"initialize"});
  constexpr std::uint64_t count = 100'000;
  for (std::uint64_t i = 1; i <= count; ++i) {
    all.deliver(sequence_position(std::to_string(i)), i);
    if (i % 10 == 0) all.add_checkpoint(false);
    span interval = batch(std::chrono::nanoseconds(i * 1000));
    if (i == 777) interval.callback = 3s;
    interval.behind = std::chrono::milliseconds(count - i);
    all.add(std::move(interval));
  }
  all.persist(sequence_position(std::to_string(count / 2)));
  all.add(span{"leaseLost"});
  const auto& kept = all.spans();
  CHECK(kept.size() <= timeline::most_spans + 1);
  CHECK(kept.size() > timeline::most_spans / 4);
  CHECK(kept.front().action == "initialize");
  CHECK(kept.back().action == "leaseLost");
  CHECK(kept.back().delivered == count);
  CHECK(kept.back().persisted <= count / 2);
  CHECK(kept.back().persisted > count / 2 - 200);
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
