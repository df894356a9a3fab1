// SPDX-License-Identifier: Apache-2.0
// kclxx new: what it refuses. tests/package builds what it makes.
#include <filesystem>

#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

TEST_CASE("a name that cannot be a project's is refused with the reason", "[new]") {
  const sandbox box;
  const auto [name, why] = GENERATE(table<std::string, std::string>({
      {"Clicks", "Clicks is no name: 3 to 63 of a-z 0-9 _ -, the first a letter"},
      {"ab", "ab is no name"},
      {"test", "test is no name: CMake has a target test"},
      {"install", "install is no name: CMake has a target install"},
      {"preinstall", "preinstall is no name: CMake has a target preinstall"},
  }));
  CAPTURE(name);
  const auto result = box.kclxx({"new", name});
  CHECK(result.status == 2);
  CHECK_THAT(result.err, Contains(why));
  CHECK_FALSE(std::filesystem::exists(box / name));
}
