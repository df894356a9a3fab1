// SPDX-License-Identifier: Apache-2.0
#include "base/arrival_time.hpp"

#include <optional>

#include "support/catch.hpp"

namespace kclxx::detail {

TEST_CASE("a sequence number has its record's arrival, if it is one of Kinesis'", "[base]") {
  // With the arrival that AWS shows for it in its documents: 1545084650.987.
  CHECK(arrival_of("49590338271490256608559692538361571095921575989136588898") == 1545084650);
  CHECK(arrival_of("49545115243490985018280067714973144582180062593244200961") == std::nullopt);
  for (const char* text :
       {"", "TRIM_HORIZON", "1", "4959033827149025660855969253836157109592157598913658889x",
        "99999999999999999999999999999999999999999999999999999999"}) {
    CHECK(arrival_of(text) == std::nullopt);
  }
}

}  // namespace kclxx::detail
