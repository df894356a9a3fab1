// SPDX-License-Identifier: Apache-2.0
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

/// Whether what is tested, or a program that it starts, could behave otherwise because of this
/// variable of the caller's shell.
bool can_disturb(std::string_view name) {
  if (name.starts_with("KCLXX_TEST_") || name == "KCLXX_WRITE_DOCS")
    return false;  // the tests' own
  constexpr std::array<std::string_view, 9> prefixes{
      "KCLXX_", "AWS_", "XDG_", "MAVEN_", "JAVA_", "JDK_", "_JAVA_", "NODE_", "RUNTIME_DIRECTORY"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

void clean_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const std::string_view name = variable.substr(0, variable.find('='));
    if (can_disturb(name)) names.emplace_back(name);
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  clean_environment();
  Catch::Session session;
#ifdef CATCH_CONFIG_RUNNER  // Catch2 version 2
  // A title that selects no test is a failure, as it is in version 3.
  session.configData().warnings = Catch::WarnAbout::NoTests;
#endif
  return session.run(argc, argv);
}
