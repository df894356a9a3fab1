// SPDX-License-Identifier: Apache-2.0
#include "tool/process/program_search.hpp"

#include <array>
#include <climits>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include "io/program_path.hpp"
#include "tool/command_error.hpp"

namespace kclxx::tool {

namespace {

executable_state look_at_path(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == -1) return executable_state::missing;
  if (S_ISDIR(status.st_mode)) return executable_state::directory;
  return ::access(path.c_str(), X_OK) == 0 ? executable_state::ok
                                           : executable_state::not_executable;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  std::array<char, PATH_MAX> place{};
  const char* const path = io::find_program(name.c_str(), place);
  return path == nullptr ? std::nullopt : std::optional<std::string>(path);
}

executable_state look_at_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return look_at_path(name);
  return find_program(name) ? executable_state::ok : executable_state::missing;
}

std::string find_java() {
  const char* const home = std::getenv("JAVA_HOME");
  const bool has_home = home != nullptr && *home != '\0';
  if (const auto java = find_program(has_home ? std::string(home) + "/bin/java" : "java")) {
    return *java;
  }
  cannot_set_up(has_home ? "there is no bin/java in JAVA_HOME, " + std::string(home)
                         : "java is not in PATH; on Debian: apt-get install "
                           "openjdk-17-jre-headless");
}

}  // namespace kclxx::tool
