// SPDX-License-Identifier: Apache-2.0
#include "tool/package_programs.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "tool/atomic_file.hpp"
#include "tool/command_error.hpp"
#include "tool/jar_checksums.hpp"
#include "tool/process/program_search.hpp"
#include "tool/process/run_program.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> words_of(const char* text) {
  std::istringstream words(text == nullptr ? "" : text);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

std::string program_of(const std::string& name, const std::string& package) {
  if (const auto program = find_program(name)) return *program;
  cannot_set_up(name + " is not in PATH; on Debian: apt-get install " + package);
}

int run(const std::vector<std::string>& command, std::string* output = nullptr) {
  // Maven knows MAVEN_ARGS since 3.9; so that every Maven does, they are given to it by us.
  std::vector<std::string> variables = environment();
  std::erase_if(variables, [](const std::string& one) { return one.starts_with("MAVEN_ARGS="); });
  if (output == nullptr) return run_program(command, std::move(variables));
  output->clear();
  return run_program(command, std::move(variables),
                     [&](std::string_view piece, pid_t) { output->append(piece); });
}

void announce(const std::string& name, const std::string& contents) {
  std::cerr << name << " fetches " << contents << "; the first time this takes about a minute."
            << std::endl;
}

void expect_success(const std::string& name, int status, const char* offline) {
  if (status == 0) return;
  cannot_set_up(name + " failed with status " + std::to_string(status) + "; see its last lines" +
                offline);
}

}  // namespace

int run_maven(const fs::path& folder, std::string_view pom, const std::string& contents,
              bool is_offline, std::string* output) {
  std::vector<std::string> command{program_of("mvn", "maven"), "-q", "-B", "-C",
                                   "-Dstyle.color=never"};
  for (const std::string& one : words_of(std::getenv("MAVEN_ARGS"))) command.push_back(one);
  if (is_offline) command.emplace_back("-o");
  command.insert(command.end(),
                 {"-f", (folder / "pom.xml").string(), "dependency:copy-dependencies",
                  "-DincludeScope=runtime", "-DoutputDirectory=" + folder.string()});
  write_file(folder / "pom.xml", pom);
  announce("Maven", contents);
  return run(command, output);
}

void expect_maven_success(int status, bool is_offline) {
  expect_success("mvn", status,
                 is_offline ? " (offline: it has only what is in its local repository)" : "");
}

void fetch_with_maven(const fs::path& folder, const tool::embedded::project& project,
                      const std::string& contents, bool is_offline) {
  expect_maven_success(run_maven(folder, project.pom, contents, is_offline), is_offline);
  expect_jars(folder, project.checksums);
}

bool has_jar(const fs::path& folder, std::string_view beginning) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(beginning) && name.ends_with(".jar")) return true;
  }
  return false;
}

void fetch_with_npm(const fs::path& folder, const std::string& contents, bool is_offline) {
  // No script of a package runs: none of them needs one.
  std::vector<std::string> command{
      program_of("npm", "npm"), "ci",         "--prefix",  folder.string(),
      "--ignore-scripts",       "--no-audit", "--no-fund", "--no-update-notifier"};
  if (is_offline) command.emplace_back("--offline");
  announce("npm", contents);
  expect_success("npm", run(command),
                 is_offline ? " (offline: it has only what is in its cache)" : "");
}

}  // namespace kclxx::tool
