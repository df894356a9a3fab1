// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "tool/replay/replay_result.hpp"
#include "tool/replay/summary.hpp"

using namespace kclxx;
using kclxx::test::Contains;

namespace {

std::string report_of(std::size_t breaches) {
  tool::replay_result result;
  result.shards.resize(1);
  for (std::size_t i = 0; i < breaches; ++i) {
    result.shards[0].summary.breaches.add(i + 1, "a status that nobody waits for");
  }
  std::ostringstream out;
  print_report(out, result);
  return out.str();
}

}  // namespace

TEST_CASE("the report has the number of the diagnostics that it does not show", "[tool][report]") {
  const std::size_t most = replay::diagnostics::most_kept;
  CHECK_THAT(report_of(most), !Contains("more\n"));
  CHECK_THAT(report_of(most + 7), Contains("... and 7 more\n"));
}
