// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/daemon_launch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <random>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "io/daemon_process.hpp"
#include "io/descriptor.hpp"
#include "io/line_writer.hpp"
#include "tool/command_error.hpp"
#include "tool/daemon/jars.hpp"
#include "tool/daemon/java_command.hpp"
#include "tool/daemon/overrides.hpp"
#include "tool/daemon/start_guard.hpp"
#include "tool/packages.hpp"
#include "tool/process/program_search.hpp"
#include "tool/process/run_program.hpp"
#include "tool/process/spawn.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace {

/// Unlike any other worker's, and still telling where the worker runs.
std::string new_worker_id() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::random_device random;
  std::string id = std::string(host.data()) + "-";
  for (int i = 0; i < 16; ++i) id += "0123456789abcdef"[random() % 16];
  return id;
}

/// Java decodes its command line in the character set of the locale.
void refuse_what_java_cannot_read(const std::string& path) {
  std::setlocale(LC_CTYPE, "");
  const bool is_ascii = std::all_of(path.begin(), path.end(),
                                    [](char c) { return static_cast<signed char>(c) >= 0; });
  if (is_ascii || MB_CUR_MAX > 1) return;
  cannot_set_up(path + " is not in ASCII, and Java does not find it in this locale: set " +
                "LC_ALL=C.UTF-8");
}

/// Of the files that were compared, and of no others.
std::string class_path_of(const launch_options& options) {
  std::string path = class_path(jars_at({options.cache, options.jars}, options.kcl));
  refuse_what_java_cannot_read(path.substr(0, path.find(':')));
  return path;
}

std::string absolute_file(const std::string& name) {
  if (::access(name.c_str(), R_OK) == -1)
    cannot_set_up(name + " cannot be read: " + std::strerror(errno));
  std::string path = std::filesystem::absolute(name).string();
  refuse_what_java_cannot_read(path);
  return path;
}

/// As Java and its launcher split them, but for quotes: names of options need none.
std::vector<std::string> options_in_variables() {
  std::vector<std::string> all;
  for (const char* name : {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}) {
    const char* const value = std::getenv(name);
    std::istringstream words(value == nullptr ? "" : value);
    for (std::string word; words >> word;) all.push_back(word);
  }
  return all;
}

launch_settings settings_for(const launch_options& options) {
  launch_settings settings;
  settings.which = options.which();
  settings.java = find_java();
  settings.class_path = class_path_of(options);
  settings.java_options = options.java_options;
  if (!options.heap.empty()) {
    settings.java_options.insert(settings.java_options.begin(), "-Xmx" + options.heap);
  }
  settings.java_variables = options_in_variables();
  settings.is_busy = options.is_busy;
  if (!options.logging.empty()) settings.logging_file = absolute_file(options.logging);
  return settings;
}

/// kclxx-share, which is installed beside this program.
std::string find_launcher() {
  const std::string here =
      std::filesystem::read_symlink("/proc/self/exe").replace_filename("kclxx-share").string();
  const std::string launcher = look_at_program(here) == executable_state::ok
                                   ? here
                                   : find_program("kclxx-share").value_or("");
  if (launcher.empty()) cannot_set_up("kclxx-share is neither beside this program nor in PATH");
  std::string path = std::filesystem::absolute(launcher).string();
  if (path.find(' ') != std::string::npos) {
    cannot_set_up(path + " has a blank, at which the daemon splits executableName");
  }
  return path;
}

/// What the daemon is to read.
properties effective_properties(const launch_options& options) {
  try {
    properties all = read_properties(options);
    if (options.is_shared) share_children(all, find_launcher());
    return all;
  } catch (const properties_error& error) {
    cannot_set_up(
        (error.line() == 0 ? "" : options.file + ":" + std::to_string(error.line()) + ": ") +
        error.what());
  }
}

/// A file in memory that only this process, and what it becomes, can reach: it is gone with the
/// process, however that ends.
std::string file_in_memory(const char* name, std::string_view text) {
  const io::descriptor low(::memfd_create(name, MFD_ALLOW_SEALING));
  const int file = ::fcntl(low.get(), F_DUPFD, 3);  // stays open across exec
  if (file == -1) cannot_set_up(std::string(name) + " cannot be made: " + std::strerror(errno));
  ::fchmod(file, 0600);
  if (const auto error = io::write_all(file, text)) {
    cannot_set_up(std::string(name) + ": " + error.message());
  }
  ::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return "/proc/self/fd/" + std::to_string(file);
}

machine this_machine() {
  const char* const region = std::getenv("AWS_REGION");
  return {look_at_program, region != nullptr && *region != '\0'};
}

void mention_diagnostics(const launch_options& options, const properties& all) {
  const auto found = find_problems(options, all);
  if (found.empty()) return;
  std::cerr << "kclxx daemon run: " << options.file << " has " << found.size()
            << (found.size() == 1 ? " problem" : " problems")
            << "; to list: kclxx daemon check --kcl " << options.kcl.text() << " " << options.file
            << std::endl;
}

// A blocked or ignored SIGTERM is inherited; Java would keep it so, and never shut down gracefully.
void listen_to_sigterm() {
  std::signal(SIGTERM, SIG_DFL);
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

}  // namespace

properties read_properties(const launch_options& options) {
  properties all = with_overrides(parse_properties(text_of_file(options.file)),
                                  overrides_in(environment()), options.which());
  for (const property& one : all) {
    if ((one.key + one.value).find('\0') == std::string::npos) continue;
    throw properties_error(one.line, one.key + " has a NUL, which nothing that it names can have");
  }
  return all;
}

std::vector<diagnostic> find_problems(const launch_options& options, const properties& all) {
  machine where = this_machine();
  if (options.is_without_program) where.look = look_at_name;
  where.core = options.kcl.core;
  std::vector<diagnostic> found = check(all, options.which(), where);
  check_kcl(options.kcl, found);
  return found;
}

void run_daemon(const launch_options& options) {
  properties all = effective_properties(options);
  launch_settings settings = settings_for(options);
  mention_diagnostics(options, all);
  settle_worker_id(all, options.which(), new_worker_id());
  settings.properties_file = file_in_memory("properties", write_properties(all));
  if (settings.logging_file.empty()) {
    settings.logging_file = file_in_memory("logging", logging_of(options.which()));
    if (options.which() != kcl_version::kcl1) start_guard();
  }
  launch made = compose(settings, all);
  for (const auto& [name, value] : made.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv(io::daemon_variable, io::to_text(io::this_process()).c_str(), 1);
  listen_to_sigterm();
  exec(std::move(made.command));
}

void print_daemon_command(const launch_options& options) {
  properties all = effective_properties(options);
  launch_settings settings = settings_for(options);
  settle_worker_id(all, options.which(), new_worker_id());
  std::vector<inline_file> files{{3, write_properties(all)}};
  settings.properties_file = "/dev/fd/3";
  if (settings.logging_file.empty()) {
    files.push_back({4, std::string(logging_of(options.which()))});
    settings.logging_file = "/dev/fd/4";
  }
  std::cout << shell_command(compose(settings, all), files) << std::flush;
}

}  // namespace kclxx::tool
