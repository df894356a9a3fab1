// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "support/catch.hpp"
#include "tool/replay/replay_progress.hpp"

using kclxx::tool::progress_line;

TEST_CASE("the progress bar shows the part of the bytes, and the records", "[tool]") {
  const std::string quarter = std::string(10, '#') + std::string(30, '.');
  CHECK(progress_line(0, 400, 0) == "[" + std::string(40, '.') + "] 0 %, 0 records");
  CHECK(progress_line(100, 400, 7) == "[" + quarter + "] 25 %, 7 records");
  CHECK(progress_line(399, 400, 8) == "[" + std::string(39, '#') + ".] 99 %, 8 records");
  CHECK(progress_line(400, 400, 9) == "[" + std::string(40, '#') + "] 100 %, 9 records");
}

TEST_CASE("a transcript that grew since is all there at 100 %", "[tool]") {
  CHECK(progress_line(500, 400, 9) == "[" + std::string(40, '#') + "] 100 %, 9 records");
}

TEST_CASE("of an input of unknown size only the records are shown", "[tool]") {
  CHECK(progress_line(100, 0, 7) == "7 records");
}
