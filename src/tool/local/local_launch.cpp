// SPDX-License-Identifier: Apache-2.0
#include "tool/local/local_launch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/descriptor.hpp"
#include "tool/atomic_file.hpp"
#include "tool/command_error.hpp"
#include "tool/embedded.hpp"
#include "tool/lease_table/lease_text.hpp"
#include "tool/lease_table/observation.hpp"
#include "tool/line_splitter.hpp"
#include "tool/packages.hpp"
#include "tool/process/program.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

const std::string fetch_command = "kclxx local fetch";

void write_files(const fs::path& folder, const embedded::folder& files) {
  for (const embedded::file& one : files.files) write_file(folder / one.name, one.text);
}

using files = std::vector<fs::path>;

// Each brings something into the cache, unless it is there, and gives its compared files.

files local_program(const fs::path& cache) {
  const embedded::folder& program = embedded::local_program;
  return fetch_package(cache, {program.name, program.checksums}, fetch_command,
                       [&](const fs::path& folder) { write_files(folder, program); });
}

/// A local Kinesis, by npm: of its package what runs.
files local_kinesis(const fs::path& cache, bool is_offline) {
  const embedded::folder& packages = embedded::local_packages;
  const auto fill = [&](const fs::path& folder) {
    const fs::path work = folder / "npm";
    fs::create_directory(work);
    write_files(work, packages);
    run_npm(work, "a local Kinesis", is_offline);
    for (const char* name : {"main.js", "server.json"}) {
      const fs::path file = work / "node_modules" / "kinesis-local" / name;
      std::error_code error;
      fs::copy_file(file, folder / name, error);
      if (error) cannot_set_up("npm did not bring " + file.string() + ", and reported no error");
    }
    fs::remove_all(work);
  };
  return fetch_package(cache, {packages.name, packages.checksums}, fetch_command, fill);
}

/// DynamoDB Local, by Maven.
files local_dynamodb(const fs::path& cache, bool is_offline) {
  const embedded::project& project = embedded::dynamodb_local;
  const auto fill = [&](const fs::path& folder) {
    run_maven(folder, project.pom, "DynamoDB Local", is_offline);
  };
  return fetch_package(cache, {project.folder, project.checksums}, fetch_command, fill);
}

fs::path folder_of(const files& all) { return all.front().parent_path(); }

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

/// What is started lives on, and nobody else's pipe or file may live on with it. Node.js itself
/// keeps no more than the first few from its children.
void keep_inherited_from_node() {
  std::error_code error;
  for (fs::directory_iterator entry("/dev/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    const int fd = std::atoi(entry->path().filename().c_str());
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
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
  return {folder_of(local_program(cache)), folder_of(local_kinesis(cache, is_offline)),
          folder_of(local_dynamodb(cache, is_offline))};
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
  std::vector<std::string> command{node, (folder_of(local_program(cache)) / "local.js").string(),
                                   call.command, "directory=" + directory.string()};
  for (const auto& [name, value] : call.options) command.push_back(name + "=" + value);
  if (call.needs == local_call::need::everything) {
    command.push_back("java=" + find_java());
    const files dynamodb = local_dynamodb(cache, call.is_offline);
    command.push_back("dynamodb-jars=" + folder_of(dynamodb).string());
    command.push_back("dynamodb-class-path=" + class_path(dynamodb));
    ::setenv("KCLXX_LOCAL_PACKAGES", folder_of(local_kinesis(cache, call.is_offline)).c_str(), 1);
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
  if (call.needs == local_call::need::everything) keep_inherited_from_node();
  io::descriptor lock;
  // Held as long as this process lives, also when it has become Node.js.
  if (call.changes_state &&
      (call.needs == local_call::need::everything || fs::exists(directory / "state.json", error))) {
    lock = lock_folder(directory);
  }
  // What main() has in place of a closed one; Node.js would take /dev/null.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) ::fcntl(standard, F_SETFD, 0);
  exec(std::move(command));
}

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string option_of(const local_call& call, std::string_view name) {
  const auto found = std::find_if(call.options.begin(), call.options.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == call.options.end() ? "" : found->second;
}

std::string clock_text(std::time_t now) {
  std::tm local{};
  std::array<char, 16> text{};
  ::localtime_r(&now, &local);
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &local)};
}

void print(const lease_table::picture& all, const local_call& call, const std::string& stream) {
  if (!option_of(call, "tsv").empty()) {
    std::cout << to_tsv(all) << std::flush;
    return;
  }
  const bool is_redrawn = !option_of(call, "watch").empty() && ::isatty(STDOUT_FILENO) == 1;
  const std::time_t now = std::time(nullptr);
  std::cout << (is_redrawn ? "\x1b[H\x1b[J" : "")
            << printable("application " + option_of(call, "application") + ", stream " + stream)
            << ", at " << clock_text(now) << '\n'
            << to_table(all, now) << std::flush;
}

}  // namespace

int show_local_leases(const local_call& call) {
  child_process node(node_command(call));
  node.input.close();
  lease_table::observation seen(lease_table::renewal_limit);
  const steady_clock::time_point begin = steady_clock::now();
  line_splitter lines;
  for (;;) {
    constexpr std::size_t piece = 65'536;
    const ssize_t size = ::read(node.output.get(), lines.prepare(piece), piece);
    if (size == -1 && errno == EINTR) continue;
    if (size == -1) cannot_set_up("what Node.js prints", "read");
    if (size == 0) break;
    lines.commit(static_cast<std::size_t>(size));
    for (std::string_view line; lines.next(line);) {
      lease_table::scan table = lease_table::parse_scan(line);
      const std::string stream = table.stream;
      seen.add(std::move(table),
               std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin));
      print(seen.look(), call, stream);
      if (!std::cout) return 0;  // nobody reads it any more; the message follows
    }
  }
  return node.wait().shell_status();
}

}  // namespace kclxx::tool
