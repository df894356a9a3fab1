// SPDX-License-Identifier: Apache-2.0
// What holds for each header of the public interface.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path root = KCLXX_SOURCE_DIR;

std::vector<fs::path> public_headers() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / "include")) {
    if (entry.path().extension() == ".hpp") found.push_back(entry.path());
  }
  return found;
}

}  // namespace

TEST_CASE("the parts of a public docstring begin lines, in CONTRIBUTING's order",
          "[architecture]") {
  const std::vector<std::string> order{
      "Units:", "Errors:", "Thread safety:", "Lifetime:", "Blocking:"};
  for (const fs::path& header : public_headers()) {
    CAPTURE(header);
    std::ifstream in(header);
    std::size_t last = 0;  // of this docstring
    for (std::string line; std::getline(in, line);) {
      if (line.find("//") == std::string::npos) last = 0;
      for (std::size_t part = 0; part < order.size(); ++part) {
        if (line.find(order[part]) == std::string::npos) continue;
        CAPTURE(line);
        CHECK(line.find("// " + order[part]) != std::string::npos);
        CHECK(part >= last);
        last = part;
      }
    }
  }
}

TEST_CASE("each public header is compiled alone", "[architecture]") {
  const std::string list = kclxx::test::read_file(root / "tests/headers/CMakeLists.txt");
  for (const fs::path& header : public_headers()) {
    const std::string name = fs::relative(header, root / "include").generic_string();
    if (kclxx::test::contains(name, "/detail/")) continue;
    CAPTURE(name);
    CHECK(kclxx::test::contains(list, " " + name));
  }
}
