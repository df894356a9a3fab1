// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_jars.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <spawn.h>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "cli/command.hpp"
#include "cli/descriptor.hpp"
#include "cli/program_search.hpp"

namespace kclxx::cli {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw command_error(exit_status::cannot_be_set_up, what);
}

[[noreturn]] void fail(const fs::path& path, const std::string& doing) {
  fail(path.string() + " cannot be " + doing + ": " + std::strerror(errno));
}

std::string partial_prefix(const fs::path& place) { return "." + place.filename().string() + "."; }

/// A folder beside the jars' place, locked as long as this process or the mvn that it started
/// lives. Removed with this object, unless it was renamed.
class partial_folder {
 public:
  explicit partial_folder(const fs::path& place) {
    std::string name = (place.parent_path() / (partial_prefix(place) + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) fail(name, "made");
    path_ = name;
    // Inherited on purpose.
    lock_ = descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY));
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == -1) fail(path_, "locked");
  }
  ~partial_folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  partial_folder(const partial_folder&) = delete;
  partial_folder& operator=(const partial_folder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

  /// False: another folder already stands there.
  bool move_to(const fs::path& place) {
    fs::permissions(path_, fs::perms(0755));
    if (::rename(path_.c_str(), place.c_str()) == -1) {
      if (errno == ENOTEMPTY || errno == EEXIST) return false;
      fail(place, "made");
    }
    path_.clear();
    return true;
  }

 private:
  fs::path path_;
  descriptor lock_;
};

/// Partial folders that nobody fills any more.
void remove_leftovers(const fs::path& place) {
  for (const auto& entry : fs::directory_iterator(place.parent_path())) {
    if (!entry.path().filename().string().starts_with(partial_prefix(place))) continue;
    const descriptor folder(::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open() || ::flock(folder.get(), LOCK_EX | LOCK_NB) == -1) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream words(text == nullptr ? "" : text);
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& one : texts) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The exit status, or 128 and the signal's number.
int run_maven(std::vector<std::string> command) {
  // Maven knows MAVEN_ARGS since 3.9; so that every Maven does, they are given to it by us.
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with("MAVEN_ARGS=")) environment.emplace_back(*one);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, command.front().c_str(), &actions, nullptr,
                                  pointers_to(command).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(command.front() + " cannot be started: " + std::strerror(error));
  int status = 0;
  while (::waitpid(pid, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> maven_command(const fs::path& folder, bool is_offline) {
  const auto maven = find_program("mvn");
  if (!maven) fail("mvn is not in PATH; on Debian: apt-get install maven");
  std::vector<std::string> command{*maven, "-q", "-B"};
  for (const std::string& one : words_of(std::getenv("MAVEN_ARGS"))) command.push_back(one);
  if (is_offline) command.emplace_back("-o");
  command.insert(command.end(),
                 {"-f", (folder / "pom.xml").string(), "dependency:copy-dependencies",
                  "-DincludeScope=runtime", "-DoutputDirectory=" + folder.string()});
  return command;
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) fail(path, "written");
}

}  // namespace

fs::path default_cache() {
  const auto set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  if (const std::string cache = set("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return fs::path(cache) / "kclxx";
  }
  if (const std::string home = set("HOME"); !home.empty()) {
    return fs::path(home) / ".cache" / "kclxx";
  }
  fail("neither XDG_CACHE_HOME nor HOME is set: name a folder with --cache");
}

fs::path place_of_jars(const fs::path& cache, launcher::generation which) {
  return fs::absolute(cache) / launcher::jars_of(which).folder;
}

bool has_jars(const fs::path& folder, launcher::generation which) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(launcher::main_jar(which)) && name.ends_with(".jar")) return true;
  }
  return false;
}

fs::path fetch_jars(const fs::path& cache, launcher::generation which, bool is_offline) {
  const fs::path place = place_of_jars(cache, which);
  if (has_jars(place, which)) return place;
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) fail(place.parent_path().string() + " cannot be made: " + error.message());
  remove_leftovers(place);
  partial_folder partial(place);
  const auto command = maven_command(partial.path(), is_offline);
  write_file(partial.path() / "pom.xml", launcher::jars_of(which).pom);
  std::cerr << "Maven brings the daemon of " << launcher::name_of(which)
            << "; the first time this takes about a minute." << std::endl;
  const int status = run_maven(command);
  if (status != 0) {
    fail("mvn failed with status " + std::to_string(status) + "; its last lines say why" +
         (is_offline ? " (offline: it has only what is in its local repository)" : ""));
  }
  if (!has_jars(partial.path(), which)) {
    fail("mvn brought no " + std::string(launcher::main_jar(which)) + "*.jar, and did not say why");
  }
  // Someone else was quicker: theirs is as good.
  if (!partial.move_to(place) && !has_jars(place, which)) {
    fail(place.string() + " has no daemon in it: remove it and fetch again");
  }
  return place;
}

}  // namespace kclxx::cli
