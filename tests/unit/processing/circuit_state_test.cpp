// SPDX-License-Identifier: Apache-2.0
// What opens and closes a circuit, and which attempts it admits, when several run at the same time.
#include <chrono>

#include "processing/circuit.hpp"
#include "support/catch.hpp"

namespace {

using kclxx::circuit_breaker;
using kclxx::processing::circuit;
using state = circuit::state;
using namespace std::chrono_literals;

const circuit::time_point start{};

state fail(circuit& in, circuit::record_state& one, circuit::time_point now = start,
           bool is_bad = false) {
  return in.on_failure(now, one, is_bad, 0);
}

}  // namespace

TEST_CASE("only the probe's own end admits the next one", "[processing][circuit]") {
  circuit one({.max_backoff = 1s, .breaker = circuit_breaker{.failures = 2}});
  circuit::record_state slow;
  circuit::record_state other;
  slow.probe = one.try_begin(start).value();
  fail(one, other);
  REQUIRE(fail(one, other) == state::opens);
  CHECK(fail(one, slow, start + 1ms) == state::open);
  REQUIRE(one.next_probe());
  CHECK_FALSE(one.try_begin(start + 1ms));

  circuit::record_state probed;
  probed.probe = one.try_begin(start + 1h).value();
  CHECK_FALSE(one.try_begin(start + 1h));
  CHECK_FALSE(one.next_probe());
  fail(one, slow, start + 1h);
  one.on_permanent_error(slow);
  CHECK_FALSE(one.try_begin(start + 2h));
  fail(one, probed, start + 2h);
  CHECK_FALSE(one.try_begin(start + 2h));
  CHECK(one.next_probe() > start + 2h);

  probed.probe = one.try_begin(start + 3h).value();
  one.on_permanent_error(probed);
  CHECK(one.try_begin(start + 3h));
}

TEST_CASE("a probe that ends after its outage is none of the next outage",
          "[processing][circuit]") {
  circuit one({.breaker = circuit_breaker{.failures = 1}});
  circuit::record_state other;
  circuit::record_state late;
  fail(one, other);
  late.probe = one.try_begin(start + 1h).value();
  CHECK(one.on_success(start + 1h));  // of an attempt that began before the circuit opened
  circuit::record_state next;
  REQUIRE(fail(one, next, start + 2h) == state::opens);
  CHECK(one.try_begin(start + 3h));
  fail(one, late, start + 3h);
  CHECK_FALSE(one.try_begin(start + 3h));
}

TEST_CASE("a record's failures after another one's success are its own", "[processing][circuit]") {
  circuit one({.breaker = circuit_breaker{.failures = 3}});
  circuit::record_state bad;
  CHECK(fail(one, bad) == state::closed);
  one.on_success(start);
  for (int i = 0; i < 10; ++i) CHECK(fail(one, bad) == state::closed);
  CHECK(one.is_quiet());
  circuit::record_state other;
  CHECK(fail(one, other) == state::closed);
  CHECK(fail(one, other) == state::closed);
  CHECK(fail(one, bad) == state::closed);
  CHECK(fail(one, other) == state::opens);
  CHECK(fail(one, bad) == state::open);
}

TEST_CASE("before the first success one record is bad, however many fail while it is parked",
          "[processing][circuit]") {
  circuit one({.max_attempts = 1});
  circuit::record_state bad;
  circuit::record_state other;
  CHECK(fail(one, bad, start, true) == state::closed);
  SECTION("it is parked") { CHECK(fail(one, other, start, true) == state::opens); }
  SECTION("it cannot be parked") {
    one.on_parking_failure(other);  // of another, which has a permanent error
    one.on_parking_failure(bad);
    CHECK(fail(one, bad, start, true) == state::closed);
    one.on_parking_failure(other);
    CHECK(fail(one, other, start, true) == state::opens);
  }
  SECTION("after a success others can be bad") {
    one.on_success(start);
    CHECK(fail(one, other, start, true) == state::closed);
    circuit::record_state third;
    CHECK(fail(one, third, start, true) == state::closed);
  }
}
