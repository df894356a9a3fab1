// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "support/catch.hpp"
#include "tool/replay/summary.hpp"

using kclxx::replay::durations;
using namespace std::chrono_literals;

TEST_CASE("quantiles count from the smallest, and those of no durations are zero", "[replay]") {
  durations all;
  CHECK(all.quantile(0.5) == 0ns);
  CHECK(all.max() == 0ns);
  durations slow;
  for (int i = 100; i > 98; --i) slow.add(i * 1us);
  for (int i = 0; i < 97; ++i) all.add(10ns);
  all.add(-7ns);  // a clock's odd span
  all.add(slow);
  CHECK(all.count() == 100);
  CHECK(all.quantile(0.01) == 0ns);
  CHECK(all.quantile(0.5) == 10ns);
  CHECK(all.quantile(0.98) == 10ns);
  CHECK(all.quantile(0.99) == 99us);
  CHECK(all.max() == 100us);
}
