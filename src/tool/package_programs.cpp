// SPDX-License-Identifier: Apache-2.0
#include "tool/package_programs.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <sstream>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tool/command.hpp"
#include "tool/jar_checksums.hpp"
#include "tool/process/descriptor.hpp"
#include "tool/process/program_search.hpp"
#include "tool/process/spawn.hpp"
#include "tool/write_file.hpp"

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

// The program that runs, and the signal that was passed on to it.
volatile std::sig_atomic_t running = 0;
volatile std::sig_atomic_t passed_on = 0;

void pass_on(int signal) {
  passed_on = signal;
  if (running > 0) ::kill(running, signal);
}

/// A signal to this process ends the program first, which would go on with what nobody waits for.
int wait_for(pid_t pid, const std::string& name) {
  int status = 0;
  while (::waitpid(pid, &status, 0) == -1) {
    if (errno != EINTR) cannot_set_up(name, "waited for");
  }
  running = 0;
  if (passed_on != 0) {
    std::signal(passed_on, SIG_DFL);
    ::raise(passed_on);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// All that a program writes into a pipe; our end of it for the program goes away first.
std::string written_to(descriptor ours, const descriptor& read_end) {
  ours.close();
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = ::read(read_end.get(), piece.data(), piece.size());
    if (n == -1 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
}

/// The exit status, or 128 and the signal's number. What it prints goes to stderr, or to `output`.
int run(const std::vector<std::string>& command, std::string* output = nullptr) {
  // Maven knows MAVEN_ARGS since 3.9; so that every Maven does, they are given to it by us.
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with("MAVEN_ARGS=")) environment.emplace_back(*one);
  }
  spawner starts;
  starts.put_null_device(STDIN_FILENO);
  std::array<int, 2> ends{-1, -1};
  if (output != nullptr && ::pipe2(ends.data(), O_CLOEXEC) == -1) cannot_set_up("a pipe", "made");
  const descriptor read_end(ends[0]);
  descriptor write_end(ends[1]);
  const int to = output == nullptr ? STDERR_FILENO : write_end.get();
  starts.put(to, STDOUT_FILENO);
  starts.put(to, STDERR_FILENO);
  starts.set_environment(std::move(environment));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(signal, pass_on) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  const pid_t pid = starts.start(command);
  running = pid;
  if (passed_on != 0) ::kill(pid, passed_on);
  if (output != nullptr) *output = written_to(std::move(write_end), read_end);
  return wait_for(pid, command.front());
}

void announce(const std::string& name, const std::string& what) {
  std::cerr << name << " fetches " << what << "; the first time this takes about a minute."
            << std::endl;
}

void expect_success(const std::string& name, int status, const char* offline) {
  if (status == 0) return;
  cannot_set_up(name + " failed with status " + std::to_string(status) + "; see its last lines" +
                offline);
}

}  // namespace

int run_maven(const fs::path& folder, std::string_view pom, const std::string& what,
              bool is_offline, std::string* output) {
  std::vector<std::string> command{program_of("mvn", "maven"), "-q", "-B", "-C",
                                   "-Dstyle.color=never"};
  for (const std::string& one : words_of(std::getenv("MAVEN_ARGS"))) command.push_back(one);
  if (is_offline) command.emplace_back("-o");
  command.insert(command.end(),
                 {"-f", (folder / "pom.xml").string(), "dependency:copy-dependencies",
                  "-DincludeScope=runtime", "-DoutputDirectory=" + folder.string()});
  write_file(folder / "pom.xml", pom);
  announce("Maven", what);
  return run(command, output);
}

void expect_maven_success(int status, bool is_offline) {
  expect_success("mvn", status,
                 is_offline ? " (offline: it has only what is in its local repository)" : "");
}

void expect_jars(const fs::path& folder, std::string_view checksums) {
  using kind = jar_difference::kind;
  const auto found = find_difference(folder, checksums);
  if (!found) return write_file(folder / checksum_file, checksums);
  if (found->what == kind::missing) cannot_set_up("mvn did not bring " + found->name);
  if (found->what == kind::unexpected) {
    cannot_set_up("mvn brought " + found->name +
                  ", which is not among the expected files, so nothing was installed");
  }
  cannot_set_up(found->name +
                " does not have the expected SHA-256 checksum, so nothing was installed. "
                "Remove it from Maven's local repository; check the mirror it came from");
}

void fetch_with_maven(const fs::path& folder, const tool::embedded::project& project,
                      const std::string& what, bool is_offline) {
  expect_maven_success(run_maven(folder, project.pom, what, is_offline), is_offline);
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

void fetch_with_npm(const fs::path& folder, const std::string& what, bool is_offline) {
  // No script of a package runs: none of them needs one.
  std::vector<std::string> command{
      program_of("npm", "npm"), "ci",         "--prefix",  folder.string(),
      "--ignore-scripts",       "--no-audit", "--no-fund", "--no-update-notifier"};
  if (is_offline) command.emplace_back("--offline");
  announce("npm", what);
  expect_success("npm", run(command),
                 is_offline ? " (offline: it has only what is in its cache)" : "");
}

}  // namespace kclxx::tool
