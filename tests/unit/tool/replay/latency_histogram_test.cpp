// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/latency_histogram.hpp"

#include <chrono>
#include <cstdint>

#include "support/catch.hpp"

using kclxx::replay::latency_histogram;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST_CASE("a histogram without durations is zero", "[replay][histogram]") {
  const latency_histogram none;
  CHECK(none.count() == 0);
  CHECK(none.quantile(0.5) == 0ns);
  CHECK(none.max() == 0ns);
}

TEST_CASE("quantiles of any size are at most 1/32 too large, and never too small",
          "[replay][histogram]") {
  for (std::int64_t value = 1; value < (std::int64_t{1} << 61); value = value * 5 / 3 + 1) {
    latency_histogram histogram;
    histogram.add(nanoseconds(value));
    histogram.add(nanoseconds(value * 2));  // so that max() does not cut the bin
    CAPTURE(value);
    const auto got = histogram.quantile(0.5).count();
    CHECK(got >= value);
    CHECK(got <= value + value / 32);
    CHECK(histogram.max() == nanoseconds(value * 2));
  }
}

TEST_CASE("quantiles count from the smallest", "[replay][histogram]") {
  latency_histogram all;
  for (int i = 1; i <= 100; ++i) all.add(nanoseconds(i <= 98 ? 10 : 1000 * i));
  CHECK(all.quantile(0.5) == 10ns);
  CHECK(all.quantile(0.98) == 10ns);
  CHECK(all.quantile(0.99) >= 99us);
  CHECK(all.quantile(0.99) < 100us + 4us);
  CHECK(all.quantile(1) == 100us);
}

TEST_CASE("histograms add up", "[replay][histogram]") {
  latency_histogram a;
  latency_histogram b;
  a.add(5ns);
  b.add(-7ns);  // a clock's odd span
  b.add(9h);
  a.add(b);
  CHECK(a.count() == 3);
  CHECK(a.quantile(0.3) == 0ns);
  CHECK(a.quantile(0.6) == 5ns);
  CHECK(a.max() == 9h);
}
