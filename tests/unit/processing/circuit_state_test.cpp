// SPDX-License-Identifier: Apache-2.0
// What opens and closes a circuit, and which attempts it admits, when several run at the same time.
#include <chrono>

#include "processing/failure_handling.hpp"
#include "support/catch.hpp"

namespace {

using kclxx::circuit_breaker;
using kclxx::processing::circuit;
using state = circuit::state;
using namespace std::chrono_literals;

const circuit::time_point start{};

/// A new record's attempt.
state fail(circuit& in, circuit::probe_id probe = circuit::no_probe,
           circuit::time_point now = start) {
  circuit::record_state failed{probe};
  return in.on_failure(now, failed, false, 0);
}

void end_probe(circuit& in, circuit::probe_id probe) {
  circuit::record_state failed{probe};
  in.on_own_failure(failed);
}

}  // namespace

TEST_CASE("only the probe's own end admits the next one", "[processing][circuit]") {
  circuit one({.max_backoff = 1s, .breaker = circuit_breaker{.failures = 2}});
  const auto slow = one.try_begin(start).value();
  fail(one);
  REQUIRE(fail(one) == state::opens);
  CHECK(fail(one, slow, start + 1ms) == state::open);
  REQUIRE(one.next_probe());
  CHECK_FALSE(one.try_begin(start + 1ms));

  const auto probed = one.try_begin(start + 1h).value();
  CHECK_FALSE(one.try_begin(start + 1h));
  CHECK_FALSE(one.next_probe());
  fail(one, slow, start + 1h);
  end_probe(one, slow);
  CHECK_FALSE(one.try_begin(start + 2h));
  fail(one, probed, start + 2h);
  CHECK_FALSE(one.try_begin(start + 2h));
  CHECK(one.next_probe() > start + 2h);

  end_probe(one, one.try_begin(start + 3h).value());
  CHECK(one.try_begin(start + 3h));
}

TEST_CASE("a probe that ends after its outage is none of the next outage",
          "[processing][circuit]") {
  circuit one({.breaker = circuit_breaker{.failures = 1}});
  fail(one);
  const auto late = one.try_begin(start + 1h).value();
  CHECK(one.on_success(start + 1h));  // of an attempt that began before the circuit opened
  REQUIRE(fail(one, circuit::no_probe, start + 2h) == state::opens);
  CHECK(one.try_begin(start + 3h));
  fail(one, late, start + 3h);
  CHECK_FALSE(one.try_begin(start + 3h));
}

TEST_CASE("the circuit opens after so many failures in a row, or at once when it is told to",
          "[processing][circuit]") {
  circuit one({.breaker = circuit_breaker{.failures = 3}});
  CHECK(fail(one) == state::closed);
  CHECK(fail(one) == state::closed);
  SECTION("in a row") { CHECK(fail(one) == state::opens); }
  SECTION("not with a success between them") {
    one.on_success(start);
    CHECK(fail(one) == state::closed);
    CHECK(fail(one) == state::closed);
    CHECK(fail(one) == state::opens);
  }
  SECTION("at once") {
    circuit::record_state failed;
    CHECK(one.on_failure(start, failed, true, 0) == state::opens);
  }
}

TEST_CASE("a record's failures after another one's success are its own", "[processing][circuit]") {
  circuit one({.breaker = circuit_breaker{.failures = 3}});
  circuit::record_state bad;
  CHECK(one.on_failure(start, bad, false, 0) == state::closed);
  one.on_success(start);
  for (int i = 0; i < 10; ++i) CHECK(one.on_failure(start, bad, false, 0) == state::closed);
  CHECK(one.is_quiet());
}
