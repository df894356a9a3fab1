// SPDX-License-Identifier: Apache-2.0
// The rules of docs/protocol.md have numbers, by which code and tests cite them.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"

namespace {

namespace fs = std::filesystem;
using kclxx::test::read_file;
using numbers = std::set<int>;

std::string of_project(const std::string& path) {
  return read_file(fs::path(KCLXX_SOURCE_DIR) / path);
}

/// The numbers of the words in `text` that are a P and a number.
numbers rules_cited(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  numbers cited;
  for (std::size_t at = 0; (at = text.find('P', at)) != std::string_view::npos; ++at) {
    if (at > 0 && is_word(text[at - 1])) continue;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    const auto end = std::find_if_not(begin, text.end(), is_digit);
    if (begin == end || *begin == '0' || end - begin > 3) continue;
    if (end != text.end() && is_word(*end)) continue;
    cited.insert(std::stoi(std::string(begin, end)));
  }
  return cited;
}

/// A rule begins with its anchor and its number: <a id="p{number}"></a>**P{number}**
std::vector<int> rules_stated() {
  const std::string page = of_project("docs/protocol.md");
  std::vector<int> rules;
  const std::string_view anchor = "<a id=\"p";
  for (std::size_t at = 0; (at = page.find(anchor, at)) != std::string::npos;) {
    at += anchor.size();
    const std::string number = page.substr(at, page.find('"', at) - at);
    CAPTURE(number);
    CHECK(page.substr(at, page.find(' ', at) - at) == number + "\"></a>**P" + number + "**");
    rules.push_back(std::stoi(number));
  }
  return rules;
}

/// The rules that the text files of a folder cite, by file.
std::map<std::string, numbers> citations(const std::string& folder) {
  std::map<std::string, numbers> result;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(KCLXX_SOURCE_DIR) / folder)) {
    const fs::path& path = entry.path();
    if (!entry.is_regular_file()) continue;
    const std::string text = read_file(path);
    if (text.find('\0') != std::string::npos) continue;  // not a text
    if (auto cited = rules_cited(text); !cited.empty()) result[path.string()] = cited;
  }
  return result;
}

}  // namespace

TEST_CASE("each rule of the protocol has a number of its own, and all numbers are used",
          "[architecture]") {
  std::vector<int> rules = rules_stated();
  REQUIRE(rules.size() > 50);
  std::sort(rules.begin(), rules.end());
  for (std::size_t i = 0; i < rules.size(); ++i) CHECK(rules[i] == static_cast<int>(i) + 1);
}

TEST_CASE("each rule that is cited anywhere is in docs/protocol.md", "[architecture]") {
  const auto rules = static_cast<int>(rules_stated().size());
  std::size_t files = 0;
  for (const char* folder :
       {"include", "src", "tests", "docs", "samples", "properties", "scripts"}) {
    for (const auto& [path, cited] : citations(folder)) {
      CAPTURE(path);
      CHECK(*cited.rbegin() <= rules);
      ++files;
    }
  }
  CHECK(files > 20);
}

TEST_CASE("each rule of docs/protocol.md is cited by a test", "[architecture]") {
  numbers tested;
  for (const auto& [path, cited] : citations("tests")) tested.insert(cited.begin(), cited.end());
  numbers untested;
  for (const int rule : rules_stated()) {
    if (tested.count(rule) == 0) untested.insert(rule);
  }
  CHECK(untested == numbers{});
}
