// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/java_release.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "tool/process/run_program.hpp"

namespace kclxx::tool {

namespace {

int number_at(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int major_in(std::string_view text) {
  for (const std::string_view before : {"JAVA_VERSION=\"", " version \""}) {
    const auto at = text.find(before);
    if (at == std::string_view::npos) continue;
    text.remove_prefix(at + before.size());
    return number_at(text.starts_with("1.") ? text.substr(2) : text);  // Java 8 is 1.8.0
  }
  return 0;
}

}  // namespace

java_release parse_java_release(std::string text) {
  const int major = major_in(text);
  return {major, std::move(text)};
}

java_release release_of(const std::string& java) {
  std::error_code error;
  const auto program = std::filesystem::canonical(java, error);
  std::ifstream file(program.parent_path().parent_path() / "release");
  if (!error && file) {
    std::ostringstream text;
    text << program.string() << '\n' << file.rdbuf();
    java_release found = parse_java_release(text.str());
    if (found.major != 0) return found;
  }
  std::string text = program.string() + '\n';
  run_program({java, "-version"}, environment(),
              [&](std::string_view piece, pid_t) { text += piece; });
  return parse_java_release(std::move(text));
}

}  // namespace kclxx::tool
