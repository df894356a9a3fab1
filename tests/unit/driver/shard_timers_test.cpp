// SPDX-License-Identifier: Apache-2.0
#include "driver/shard_timers.hpp"

#include <chrono>
#include <memory>
#include <string>

#include "support/catch.hpp"

using kclxx::driver::shard_timers;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds once{0};
const shard_timers::time_point start{std::chrono::hours(1)};

/// Calls what is due, as a host does.
void run_due(shard_timers& timers, shard_timers::time_point now) {
  while (const auto call = timers.take_due(now)) (*call)();
}

}  // namespace

TEST_CASE("timers are due in the order of their times, and of their start when these are equal",
          "[driver]") {
  shard_timers timers;
  std::string called;
  timers.start(start + milliseconds(10), once, [&] { called += 'b'; });
  timers.start(start + milliseconds(10), once, [&] { called += 'c'; });
  timers.start(start + milliseconds(5), once, [&] { called += 'a'; });
  run_due(timers, start + milliseconds(30));
  CHECK(called == "abc");
}

TEST_CASE("periods that passed unnoticed make one call, and the next is a period later",
          "[driver]") {
  shard_timers timers;
  timers.start(start + milliseconds(10), milliseconds(10), [] {});
  const auto late = start + milliseconds(45);
  CHECK(timers.take_due(late) != nullptr);
  CHECK(timers.take_due(late) == nullptr);
  CHECK(timers.next_due() == late + milliseconds(10));
}

TEST_CASE("a timer that was cancelled is not due", "[driver]") {
  shard_timers timers;
  const auto first = timers.start(start, once, [] {});
  const auto second = timers.start(start, milliseconds(10), [] {});
  CHECK(first != second);
  timers.cancel(first);
  timers.cancel(second);
  timers.cancel(second);
  CHECK_FALSE(timers.next_due());
}

TEST_CASE("a timer that cancels itself stays alive until it returns", "[driver]") {
  shard_timers timers;
  shard_timers::timer_id self = 0;
  std::string text;
  self = timers.start(start, milliseconds(10), [&, owned = std::string("alive")] {
    timers.cancel(self);
    text = owned;
  });
  run_due(timers, start);
  CHECK(text == "alive");
  CHECK_FALSE(timers.next_due());
}

TEST_CASE("functions of timers that were cancelled, ended or refused are destroyed by the host",
          "[driver]") {
  shard_timers timers;
  const auto owned = std::make_shared<int>(7);
  const auto function = [owned] {};
  const auto first = timers.start(start, once, function);
  timers.cancel(first);
  timers.cancel(first);
  timers.start(start, milliseconds(10), function);
  timers.end();
  timers.start(start, once, function);
  CHECK(owned.use_count() == 5);
  CHECK(timers.take_dropped().size() == 3);
  CHECK(owned.use_count() == 2);
  CHECK(timers.take_dropped().empty());
}
