// SPDX-License-Identifier: Apache-2.0
// The table of docs/metrics.md is made from the families, so that none is undocumented.
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <kclxx/metrics_recorder.hpp>

#include "support/catch.hpp"
#include "support/text.hpp"

namespace kclxx::observability {

namespace {

const std::string path = std::string(KCLXX_SOURCE_DIR) + "/docs/metrics.md";
constexpr std::string_view end_mark = "<!-- end -->";

std::string table() {
  static constexpr const char* types[] = {"counter", "gauge", "histogram"};
  std::string text = "| family | type | meaning |\n|---|---|---|\n";
  for (const metrics_recorder::metric_family& family : metrics_recorder::families()) {
    text.append("| `").append(family.name).append("`");
    if (!family.label.empty()) text.append(" `{").append(family.label).append("}`");
    text.append(" | ").append(types[static_cast<std::size_t>(family.type)]);
    text.append(" | ").append(family.help).append(" |\n");
  }
  return text;
}

}  // namespace

TEST_CASE("docs/metrics.md has the table of the families", "[observability][metrics]") {
  const std::string page = test::read_file(path);
  const std::size_t mark = page.find("<!-- families:");
  REQUIRE(mark != std::string::npos);
  const std::size_t begin = page.find('\n', mark) + 1;
  const std::size_t end = page.find(end_mark, begin);
  REQUIRE(end != std::string::npos);
  if (std::getenv("KCLXX_WRITE_DOCS") != nullptr) {
    std::ofstream(path) << page.substr(0, begin) + table() + page.substr(end);
  } else {
    CHECK(page.substr(begin, end - begin) == table());
  }
}

TEST_CASE("docs/metrics.md explains the switches that there are", "[observability][metrics]") {
  const std::string page = test::read_file(path);
  for (const char* name : {"KCLXX_METRICS_DIR", "KCLXX_SUMMARY_SECONDS", "KCLXX_CLOUDWATCH_SECONDS",
                           "KCLXX_LOG", "KCLXX_LOG_FILE"}) {
    CAPTURE(name);
    CHECK(page.find(name) != std::string::npos);
  }
}

}  // namespace kclxx::observability
