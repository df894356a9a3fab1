// SPDX-License-Identifier: Apache-2.0
#include "host/packages.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <set>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/program.hpp"

namespace kclxx::host {

using namespace tool;

namespace fs = std::filesystem;

namespace {

struct checksum {
  std::string hash;
  std::string name;
};

constexpr std::size_t hash_size = 64;

/// The lines of a SHA256SUMS. A name is everything after the two blanks, so it may have blanks.
std::vector<checksum> parsed(std::string_view text, const std::string& source) {
  std::vector<checksum> checksums;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const bool is_sound = line.size() > hash_size + 2 && line[hash_size] == ' ' &&
                          line.find_first_not_of("0123456789abcdef") == hash_size &&
                          line.find('/') == std::string::npos;
    if (!is_sound) cannot_set_up(source + " has a line that sha256sum does not write for a folder");
    checksums.push_back({line.substr(0, hash_size), line.substr(hash_size + 2)});
  }
  return checksums;
}

/// Refuses what another user could change, since it runs, or is about to.
void refuse_others(const fs::path& path, const struct stat& status) {
  const std::string problem = access_of_others(status);
  if (problem.empty()) return;
  cannot_set_up(
      path.string() + " " + problem + ", who could change what runs" +
      (status.st_uid == ::geteuid() ? ": chmod go-w it, or " : ": make it yours (chown), or ") +
      "name another cache with --cache or XDG_CACHE_HOME");
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == -1) cannot_set_up(path, "examined");
  return status;
}

/// The hashes of files, by the program sha256sum.
std::vector<std::string> hashes_of(const fs::path& folder, const std::vector<checksum>& files) {
  if (files.empty()) return {};
  std::vector<std::string> command{"sha256sum", "--"};
  for (const checksum& file : files) command.push_back((folder / file.name).string());
  const program_result sha256sum = run_program(command);
  std::vector<std::string> hashes;
  std::istringstream lines(sha256sum.output);
  // A backslash comes before the hash of a name that is written with escapes.
  for (std::string line; std::getline(lines, line);) {
    hashes.push_back(line.substr(line.starts_with('\\') ? 1 : 0, hash_size));
  }
  if (hashes.size() != files.size()) {
    cannot_set_up("sha256sum, of the package coreutils, failed: " +
                  sha256sum.error.substr(0, sha256sum.error.find('\n')));
  }
  return hashes;
}

/// A jar of ours (see own_jar), and the file with its checksum.
bool is_own(const std::string& name) {
  return name.starts_with("kclxx-") && (name.ends_with(".jar") || name.ends_with(".sha256"));
}

/// Takes the files of ours out of `names`, and gives the jars that count: those with a checksum. A
/// process that was killed can leave a jar or a checksum alone, and then neither counts.
std::vector<checksum> take_own(std::set<std::string>& names, const fs::path& folder) {
  std::vector<checksum> own;
  for (const std::string& name : names) {
    if (!is_own(name) || !name.ends_with(".sha256")) continue;
    for (checksum& jar : parsed(text_of_file((folder / name).string()), folder / name)) {
      if (is_own(jar.name) && names.count(jar.name) == 1) own.push_back(std::move(jar));
    }
  }
  std::erase_if(names, is_own);
  return own;
}

/// The expected files. Errors: command_error for the first entry of a folder that is not as
/// expected: `subject`, that entry, and `remedy`.
std::vector<fs::path> compare(const fs::path& folder, std::string_view checksums,
                              const std::string& subject, const std::string& remedy) {
  const auto expect = [&](bool is_so, const std::string& name, const char* fault) {
    if (!is_so) cannot_set_up(subject + ": " + name + fault + remedy);
  };
  std::vector<checksum> expected = parsed(checksums, folder / checksum_file);
  std::set<std::string> names = names_in(folder);  // folders, links and pipes were not fetched
  names.erase(checksum_file);
  std::vector<fs::path> files;
  std::vector<checksum> own = take_own(names, folder);
  for (const checksum& jar : own) names.insert(jar.name);
  std::move(own.begin(), own.end(), std::back_inserter(expected));
  for (const checksum& file : expected) {
    expect(names.erase(file.name) == 1, file.name, " is missing");
    expect(S_ISREG(status_of(folder / file.name).st_mode), file.name, " was changed");
    files.push_back(folder / file.name);
  }
  expect(names.empty(), names.empty() ? "" : *names.begin(), " was added");
  const std::vector<std::string> hashes = hashes_of(folder, expected);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    expect(hashes[i] == expected[i].hash, expected[i].name, " was changed");
  }
  return files;
}

std::vector<fs::path> jars_in(const fs::path& folder) {
  std::vector<fs::path> jars;
  for (const std::string& name : names_in(folder)) {
    if (name.ends_with(".jar") && fs::is_regular_file(folder / name)) jars.push_back(folder / name);
  }
  return jars;
}

std::vector<fs::path> as_fetched(const fs::path& folder, std::string_view checksums,
                                 const std::string& remedy) {
  return compare(folder, checksums, folder.string() + " is not as it was fetched", remedy);
}

std::string program_of(const std::string& name, const std::string& debian_package) {
  if (const auto program = find_program(name)) return *program;
  cannot_set_up(name + " is not in PATH; on Debian: apt-get install " + debian_package);
}

void announce(const std::string& name, const std::string& contents) {
  std::cerr << name << " fetches " << contents << "; the first time this takes about a minute."
            << std::endl;
}

void expect_success(const std::string& name, const program_result& program) {
  const int status = program.end.shell_status();
  if (status == 0) return;
  cannot_set_up(name + " failed with status " + std::to_string(status) + "; see its last lines");
}

}  // namespace

fs::path user_folder(const char* xdg, const char* below_home) {
  if (const std::string set = variable(xdg); set.starts_with('/')) return fs::path(set) / "kclxx";
  if (const std::string home = variable("HOME"); !home.empty()) {
    return fs::path(home) / below_home / "kclxx";
  }
  cannot_set_up("neither " + std::string(xdg) + ", as an absolute path, nor HOME is set");
}

io::descriptor lock_folder(const fs::path& folder) {
  const fs::path path = folder / ".lock";
  io::descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!lock.is_open()) cannot_set_up(path, "opened");
  struct stat status {};
  const bool is_ours = ::fstat(lock.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == ::geteuid() && (status.st_mode & 0077U) == 0;
  if (!is_ours) cannot_set_up(path.string() + " is not a file of yours alone: remove it");
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 15min;
  std::array<char, 32> holder{};
  for (bool is_told = false; ::flock(lock.get(), LOCK_EX | LOCK_NB) == -1; is_told = true) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      cannot_set_up(path, "locked, so name a cache elsewhere");
    if (!is_told) {
      std::ignore = ::pread(lock.get(), holder.data(), holder.size() - 1, 0);
      std::cerr << "waiting for process " << holder.data() << ", which has locked " << path.string()
                << std::endl;
    }
    if (std::chrono::steady_clock::now() > end) {
      cannot_set_up("process " + std::string(holder.data()) + " has locked " + path.string() +
                    " for a quarter of an hour: end it");
    }
    std::this_thread::sleep_for(100ms);
    throw_if_cancelled();
  }
  const std::string id = std::to_string(::getpid());
  std::ignore = ::ftruncate(lock.get(), 0);
  std::ignore = ::pwrite(lock.get(), id.data(), id.size(), 0);
  return lock;
}

std::vector<fs::path> files_of(const fs::path& cache, const package& wanted,
                               const std::string& fetch) {
  const fs::path folder = cache / wanted.folder;
  struct stat status {};
  if (::lstat(folder.c_str(), &status) == -1) {
    cannot_set_up(folder.string() + " is not there; this fetches it: " + fetch);
  }
  if (!S_ISDIR(status.st_mode)) cannot_set_up(folder.string() + " is no folder: remove it");
  struct stat above {};
  if (::stat(cache.c_str(), &above) == -1) cannot_set_up(cache, "examined");
  refuse_others(cache, above);
  refuse_others(folder, status);
  std::vector<fs::path> files =
      wanted.checksums.empty()
          ? jars_in(folder)
          : as_fetched(folder, wanted.checksums, "; remove the folder, and fetch again: " + fetch);
  for (const fs::path& file : files) refuse_others(file, status_of(file));
  return files;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / checksum_file, error)) return jars_in(folder);
  return as_fetched(folder, text_of_file((folder / checksum_file).string()), "");
}

std::vector<fs::path> fetch_package(const fs::path& cache, const package& wanted,
                                    const std::string& fetch,
                                    const std::function<void(const fs::path& folder)>& fill) {
  const fs::path place = cache / wanted.folder;
  std::error_code error;
  if (fs::exists(place, error)) return files_of(cache, wanted, fetch);
  ::umask(::umask(022) | 022U);  // for what Maven and npm write, too
  fs::create_directories(cache, error);
  if (errno = error.value(); error) cannot_set_up(cache, "made");
  struct stat status {};
  if (::stat(cache.c_str(), &status) == -1) cannot_set_up(cache, "examined");
  refuse_others(cache, status);
  const io::descriptor lock = lock_folder(cache);
  if (fs::exists(place, error)) return files_of(cache, wanted, fetch);
  const fs::path partial = cache / ("." + std::string(wanted.folder) + ".partial");
  fs::remove_all(partial);  // left by a process that was killed: the lock is free
  if (::mkdir(partial.c_str(), 0755) == -1) cannot_set_up(partial, "made");
  try {
    fill(partial);
    if (!wanted.checksums.empty()) {
      compare(partial, wanted.checksums, "what came is not what was expected",
              ", so nothing was installed. Remove it from the program's own cache; check the "
              "mirror it came from");
      write_file(partial / checksum_file, wanted.checksums);
    }
    fs::rename(partial, place);
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
  return files_of(cache, wanted, fetch);
}

std::string own_jar(std::string_view hash) { return "kclxx-" + std::string(hash) + ".jar"; }

bool is_own_jar(const fs::path& file) { return is_own(file.filename().string()); }

void install_own_jar(const fs::path& jar, const fs::path& folder) {
  fs::path sums = jar;
  sums.replace_extension(".sha256");
  write_file(sums, hash_of(jar) + "  " + jar.filename().string() + "\n");
  fs::rename(sums, folder / sums.filename());
  fs::rename(jar, folder / jar.filename());
}

std::string hash_of(const fs::path& file) {
  return hashes_of(file.parent_path(), {{"", file.filename().string()}}).front();
}

std::string find_java() {
  const std::string home = variable("JAVA_HOME");
  if (const auto java = find_program(home.empty() ? "java" : home + "/bin/java")) return *java;
  cannot_set_up(!home.empty() ? "there is no bin/java in JAVA_HOME, " + home
                              : "java is not in PATH; on Debian: apt-get install "
                                "openjdk-17-jre-headless");
}

std::string class_path(const std::vector<fs::path>& files) {
  std::string path;
  for (const fs::path& file : files) {
    if (file.extension() != ".jar") continue;
    if (file.string().find(':') != std::string::npos) {
      cannot_set_up(file.string() +
                    " has a colon, which Java takes for the end of a class path's entry");
    }
    path += (path.empty() ? "" : ":") + file.string();
  }
  return path;
}

bool run_maven(const fs::path& folder, std::string_view pom, const std::string& contents,
               std::string* output) {
  const fs::path file = folder / "pom.xml";
  // Maven knows MAVEN_ARGS since 3.9, so this gives them to every Maven. Without -U Maven would not
  // look again on the same day for what an earlier run did not find.
  std::vector<std::string> command{"env", "-u", "MAVEN_ARGS", program_of("mvn", "maven"), "-q",
                                   "-B",  "-C", "-U",         "-Dstyle.color=never"};
  for (const std::string& word : words_of(variable("MAVEN_ARGS"))) command.push_back(word);
  command.insert(command.end(), {"-f", file.string(), "dependency:copy-dependencies",
                                 "-DincludeScope=runtime", "-DoutputDirectory=" + folder.string()});
  write_file(file, pom);
  announce("Maven", contents);
  const program_result maven =
      run_program(command, output == nullptr ? program_output::to_stderr : program_output::kept);
  fs::remove(file);
  if (output == nullptr) {
    expect_success("mvn", maven);
  } else {
    *output = maven.output + maven.error;
  }
  return maven.end.is_success();
}

void run_npm(const fs::path& folder, const std::string& contents) {
  // No script of a package runs: none of them needs one.
  std::vector<std::string> command{
      program_of("npm", "npm"), "ci",         "--prefix",  folder.string(),
      "--ignore-scripts",       "--no-audit", "--no-fund", "--no-update-notifier"};
  announce("npm", contents);
  expect_success("npm", run_program(command, program_output::to_stderr));
}

}  // namespace kclxx::host
