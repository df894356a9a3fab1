// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

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

TEST_CASE("the test kit's page and the README show word_count's test to the letter",
          "[architecture]") {
  const std::string sample = read("samples/word_count/word_count_test.cpp");
  const auto snippets_of = [](const std::string& page) {
    std::vector<std::string> snippets;
    const std::string fence = "```";
    const std::string begin = fence + "cpp\n";
    for (std::size_t at = 0; (at = page.find(begin, at)) != std::string::npos;) {
      at += begin.size();
      snippets.push_back(page.substr(at, page.find(fence, at) - at));
    }
    return snippets;
  };
  const auto shown = snippets_of(read("docs/testing.md"));
  CHECK(shown.size() == 3);
  for (const std::string& snippet : shown) {
    CAPTURE(snippet);
    CHECK(sample.find(snippet) != std::string::npos);
  }
  const std::string readme = read("README.md");
  const auto section = readme.find("## Test it\n");
  REQUIRE(section != std::string::npos);
  const auto in_readme =
      snippets_of(readme.substr(section, readme.find("\n## ", section) - section));
  REQUIRE(in_readme.size() == 1);
  CHECK(sample.find(in_readme[0]) != std::string::npos);
}

TEST_CASE("the page about processing shows the recipe for exactly-once effects as it is tested",
          "[architecture]") {
  const std::string test = read("tests/unit/testing/exactly_once_test.cpp");
  const auto begin = test.find("class totals ");
  const auto end = test.find("};\n", begin) + 3;
  REQUIRE(begin < end);
  CHECK(read("docs/processing.md").find("```cpp\n" + test.substr(begin, end - begin) + "```\n") !=
        std::string::npos);
}

TEST_CASE("each link from a document to a file of the project leads to one", "[architecture]") {
  namespace fs = std::filesystem;
  std::vector<fs::path> pages;
  for (const auto& entry : fs::recursive_directory_iterator(KCLXX_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    pages.push_back(fs::path(KCLXX_SOURCE_DIR) / page);
  }
  std::size_t links = 0;
  for (const fs::path& page : pages) {
    // A lambda in code looks like a link.
    const std::string text = std::regex_replace(read(fs::relative(page, KCLXX_SOURCE_DIR).string()),
                                                std::regex("`+[^`]*`+"), "");
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos;) {
      at += 2;
      const std::string target = text.substr(at, text.find_first_of("#)", at) - at);
      if (target.empty() || target.find("://") != std::string::npos) continue;
      CAPTURE(page, target);
      CHECK(fs::exists(page.parent_path() / target));
      ++links;
    }
  }
  CHECK(links > 30);
}
