// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

namespace {

std::string read(const std::string& path) {
  std::ifstream in(std::string(KCLXX_SOURCE_DIR "/") + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the README shows print_records to the letter, in 30 lines at most", "[architecture]") {
  const std::string sample = read("samples/print_records/print_records.cpp");
  REQUIRE_FALSE(sample.empty());
  CHECK(std::count(sample.begin(), sample.end(), '\n') <= 30);
  CHECK(read("README.md").find("```cpp\n" + sample + "```\n") != std::string::npos);
}
