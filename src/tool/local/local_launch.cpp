// SPDX-License-Identifier: Apache-2.0
#include "tool/local/local_launch.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/descriptor.hpp"
#include "tool/atomic_file.hpp"
#include "tool/command_error.hpp"
#include "tool/embedded.hpp"
#include "tool/jar_checksums.hpp"
#include "tool/package_cache.hpp"
#include "tool/package_programs.hpp"
#include "tool/process/program_search.hpp"
#include "tool/process/spawn.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

fs::path place_in(const fs::path& cache, std::string_view name) {
  return fs::absolute(cache) / name;
}

bool has_expected_packages(const fs::path& folder) {
  return folder_checksum(folder / "node_modules") == embedded::local_packages_checksum;
}

void write_files(const fs::path& folder, const embedded::folder& files) {
  for (const embedded::file& one : files.files) write_file(folder / one.name, one.text);
}

// Each brings something into the cache, unless it is there, and gives its folder.

fs::path local_program(const fs::path& cache) {
  fs::path place = place_in(cache, embedded::local_program.name);
  const auto is_complete = [](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / "local.js", error);
  };
  fetch_folder({place, is_complete,
                [](const fs::path& folder) { write_files(folder, embedded::local_program); }});
  return place;
}

/// node_modules: a local Kinesis, by npm.
fs::path fetch_local_packages(const fs::path& cache, bool is_offline) {
  const fs::path place = place_in(cache, embedded::local_packages.name);
  const std::string proof = "node_modules/kinesis-local/main.js";
  const auto is_complete = [&](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / proof, error);
  };
  const auto fill = [&](const fs::path& folder) {
    write_files(folder, embedded::local_packages);
    fetch_with_npm(folder, "a local Kinesis", is_offline);
    if (!is_complete(folder))
      cannot_set_up("npm did not bring " + proof + ", and reported no error");
    if (!has_expected_packages(folder)) {
      cannot_set_up(
          "what npm brought does not have the expected SHA-256 checksum, so nothing was installed");
    }
  };
  fetch_folder({place, is_complete, fill});
  return place / "node_modules";
}

/// The jars, by Maven.
fs::path fetch_dynamodb_local(const fs::path& cache, bool is_offline) {
  fs::path place = place_in(cache, embedded::dynamodb_local.folder);
  const auto is_complete = [](const fs::path& folder) { return has_jar(folder, "DynamoDBLocal-"); };
  const auto fill = [&](const fs::path& folder) {
    fetch_with_maven(folder, embedded::dynamodb_local, "DynamoDB Local", is_offline);
  };
  fetch_folder({place, is_complete, fill});
  return place;
}

/// Ends the command when the packages or the jars are not those that were fetched.
void verify_local(const fs::path& cache) {
  const std::string fetch = "kclxx local fetch";
  expect_as_fetched(place_in(cache, embedded::dynamodb_local.folder),
                    embedded::dynamodb_local.checksums, fetch);
  const fs::path packages = place_in(cache, embedded::local_packages.name);
  if (has_expected_packages(packages)) return;
  cannot_set_up(packages.string() +
                " is not as it was fetched; remove the folder, and fetch again: " + fetch);
}

std::string find_node() {
  if (const auto node = find_program("node")) return *node;
  cannot_set_up("node is not in PATH; on Debian: apt-get install nodejs");
}

fs::path default_directory() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return fs::path(state) / "kclxx" / "local";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".local/state/kclxx/local";
  cannot_set_up("neither XDG_STATE_HOME nor HOME is set: name a folder with --directory");
}

fs::path directory_of(const local_call& call) {
  return fs::absolute(call.directory.empty() ? default_directory() : fs::path(call.directory));
}

/// Held as long as this process lives, also when it has become another program. Node.js keeps it
/// from what it starts.
io::descriptor lock_directory(const fs::path& directory) {
  io::descriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY));
  if (!lock.is_open()) cannot_set_up(directory, "opened");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  std::cerr << "waiting for another kclxx local start or stop in " << directory.string()
            << std::endl;
  while (::flock(lock.get(), LOCK_EX) == -1) {
    if (errno != EINTR) cannot_set_up(directory, "locked");
  }
  return lock;
}

/// What is started lives on, and nobody else's pipe or file may live on with it. Node.js itself
/// keeps no more than the first few from its children.
void close_inherited() {
  std::vector<int> all;
  std::error_code error;
  for (fs::directory_iterator entry("/dev/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    const int fd = std::atoi(entry->path().filename().c_str());
    if (fd > STDERR_FILENO) all.push_back(fd);
  }
  for (const int fd : all) ::close(fd);
}

void open_input(const std::string& name) {
  if (name == "-") return;
  const std::string path = name.empty() ? "/dev/null" : name;
  const io::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() || ::dup2(file.get(), STDIN_FILENO) == -1) cannot_set_up(path, "opened");
  std::error_code error;
  if (fs::is_directory(path, error)) cannot_set_up(path + " is a directory");
}

}  // namespace

std::vector<std::string> fetch_local(bool is_offline) {
  const fs::path cache = default_cache();
  std::vector<std::string> folders{local_program(cache).string(),
                                   fetch_local_packages(cache, is_offline).string(),
                                   fetch_dynamodb_local(cache, is_offline).string()};
  verify_local(cache);
  return folders;
}

std::vector<std::string> node_command(const local_call& call) {
  const fs::path cache = default_cache();
  const fs::path directory = directory_of(call);
  open_input(call.input);
  std::error_code error;
  if (call.needs == local_call::need::what_runs && !fs::exists(directory / "state.json", error)) {
    cannot_set_up("nothing runs in " + directory.string() + "; kclxx local start starts it");
  }
  const std::string node = find_node();
  std::vector<std::string> command{node, (local_program(cache) / "local.js").string(), call.command,
                                   "directory=" + directory.string()};
  for (const auto& [name, value] : call.options) command.push_back(name + "=" + value);
  if (call.needs == local_call::need::everything) {
    command.push_back("java=" + find_java());
    command.push_back("dynamodb-jars=" + fetch_dynamodb_local(cache, call.is_offline).string());
    ::setenv("KCLXX_LOCAL_PACKAGES", fetch_local_packages(cache, call.is_offline).c_str(), 1);
    verify_local(cache);
  }
  ::unsetenv("NODE_PATH");
  return command;
}

void run_local(const local_call& call) {
  std::vector<std::string> command = node_command(call);
  const fs::path directory = directory_of(call);
  std::error_code error;
  if (call.needs == local_call::need::everything) fs::create_directories(directory, error);
  if (error) cannot_set_up(directory.string() + " cannot be made: " + error.message());
  if (call.needs == local_call::need::everything) close_inherited();
  io::descriptor lock;
  if (call.changes_state && fs::is_directory(directory, error)) lock = lock_directory(directory);
  // What main() has in place of a closed one; Node.js would take /dev/null.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) ::fcntl(standard, F_SETFD, 0);
  exec(std::move(command));
}

}  // namespace kclxx::tool
