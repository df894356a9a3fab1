// SPDX-License-Identifier: Apache-2.0
#include "host/daemon/jars.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <regex>
#include <sstream>
#include <unistd.h>

#include <boost/algorithm/string/replace.hpp>

#include "host/packages.hpp"
#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/process/program.hpp"

namespace kclxx::host {

using namespace tool;

namespace fs = std::filesystem;

namespace {

std::string pom_with(std::string_view core, std::string_view daemon) {
  std::string pom(jars_of(kcl_version::kcl3).pom);
  const kcl_parts there = tested_parts(kcl_version::kcl3);
  for (const auto& [old, wanted] : {std::pair(there.daemon, daemon), std::pair(there.core, core)}) {
    boost::replace_all(pom, ">" + std::string(old) + "<", ">" + std::string(wanted) + "<");
  }
  return pom;
}

/// Brings a core that was not tested, under the daemon of the same version if that is published:
/// fewer versions of the daemon are.
void bring_other_version(const fs::path& folder, const kcl_choice& kcl) {
  const kcl_parts tested = tested_parts(kcl.which);
  std::string output;
  const auto bring = [&](std::string_view daemon) {
    output.clear();
    return run_maven(folder, pom_with(kcl.core, daemon),
                     "KCL " + kcl.core + " with the daemon " + std::string(daemon), &output);
  };
  bool is_there = bring(kcl.core);
  if (!is_there && output.find("Could not find artifact software.amazon.kinesis:amazon-kinesis-"
                               "client-pom:") != std::string::npos) {
    cannot_set_up("Maven finds no KCL " + kcl.core);
  }
  // Any further failure, as of a mirror or offline, does not tell which daemons there are.
  if (!is_there && output.find("Could not find artifact") != std::string::npos) {
    std::cerr << "There is no daemon " << kcl.core << "; the tested one is fetched." << std::endl;
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
    is_there = bring(tested.daemon);
  }
  std::cerr << output;
  if (is_there) return;
  cannot_set_up("mvn failed; see its last lines");
}

fs::path cache_at(const std::string& name) {
  return fs::absolute(name.empty() ? default_cache() : fs::path(name));
}

struct named_package {
  std::string name;
  std::string_view checksums;

  explicit named_package(const kcl_choice& kcl) : name(jars_of(kcl.which).folder) {
    if (kcl.core.empty()) {
      checksums = jars_of(kcl.which).checksums;
    } else {
      name.insert(name.find('-'), "-" + kcl.core);
    }
  }
  [[nodiscard]] package get() const { return {name, checksums}; }
};

std::string fetch_command(const kcl_choice& kcl, const std::string& cache) {
  return "kclxx daemon fetch --kcl " + kcl.text() + (cache.empty() ? "" : " --cache " + cache);
}

bool is_daemon(const fs::path& file) {
  return file.filename().string().starts_with("amazon-kinesis-client-multilang-");
}

void expect_main_jar(const std::vector<fs::path>& files, kcl_version kcl, const fs::path& folder) {
  if (std::any_of(files.begin(), files.end(), is_daemon)) return;
  cannot_set_up("the jars of " + std::string(name_of(kcl)) + " are not in " + folder.string());
}

/// Whether a program succeeds. What it prints is dropped: javac's words are about our own source.
bool succeeds(const std::vector<std::string>& command) {
  try {
    return run_program(command).end.is_success();
  } catch (const std::runtime_error&) {
    return false;  // it is not there
  }
}

/// Java's tool of that name, beside the Java that runs, or in PATH.
std::string java_tool(const char* name) {
  const fs::path beside = fs::path(find_java()).parent_path() / name;
  std::error_code error;
  return fs::exists(beside, error) ? beside.string() : name;
}

/// Whether a jar's listing has the class of a source.
bool lists_class(const std::string& listing, const embedded::file& source) {
  return listing.find('/' + fs::path(source.name).stem().string() + ".class\n") !=
         std::string::npos;
}

/// The jar of src/host/java in the folder `work`, with every class that it must have. Nothing:
/// there is no JDK.
std::optional<fs::path> compiled(const fs::path& work, const std::vector<fs::path>& jars) {
  fs::path jar = work / own_jar(embedded::java_sources.name);
  const std::string classes = (work / "classes").string();
  const auto compiles = [&](const std::vector<embedded::file>& sources) {
    std::vector<std::string> command{java_tool("javac"), "--release", "8",     "-Xlint:-options",
                                     "-proc:none",       "-d",        classes, "-cp",
                                     class_path(jars)};
    for (const embedded::file& source : sources) {
      write_file(work / source.name, source.text);
      command.push_back((work / source.name).string());
    }
    return succeeds(command);
  };
  std::vector<embedded::file> sources(embedded::java_sources.files.begin(),
                                      embedded::java_sources.files.end());
  bool is_compiled = compiles(sources);
  if (!is_compiled && !has_tested_daemon(jars)) {
    // Another daemon may lack what a worker of ours needs. StreamsDaemon then runs AWS's.
    std::erase_if(sources, [](const embedded::file& source) {
      return source.name != "PropertiesReader.java" && source.name != "StreamsDaemon.java";
    });
    is_compiled = compiles(sources);
  }
  if (!is_compiled ||
      !succeeds({java_tool("jar"), "--create", "--file", jar.string(), "-C", classes, "."})) {
    return std::nullopt;
  }
  const std::string listing =
      run_program({java_tool("jar"), "--list", "--file", jar.string()}).output;
  for (const embedded::file& source : sources) {
    if (!lists_class(listing, source)) {
      cannot_set_up("javac and jar left out the class of " + std::string(source.name) +
                    ", so nothing was installed");
    }
  }
  return jar;
}

/// Compiles src/host/java beside the jars, unless that is there. The daemon starts without, so a
/// cache that cannot be written and a missing JDK are no errors.
void add_own_jar(const fs::path& cache, const package& wanted, const std::string& fetch) {
  if (::access(cache.c_str(), W_OK) == -1) return;
  const io::descriptor lock = lock_folder(cache);
  std::vector<fs::path> jars = files_of(cache, wanted, fetch);
  if (own_jar_among(jars)) return;  // another process was first
  const std::string prefix = "." + std::string(wanted.folder) + ".classes.";
  for (const auto& entry : fs::directory_iterator(cache)) {
    // The lock is free, so its process was killed.
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path());
  }
  const temporary_folder work(cache / prefix);
  if (const auto jar = compiled(work.path(), jars))
    return install_own_jar(*jar, cache / wanted.folder);
  std::cerr
      << "kclxx daemon fetch: there is no JDK (javac, jar) of Java 9 or newer, so `daemon "
         "check` will judge the keys, not the values, and `run` will take one stream, and the "
         "daemon's own writer of batches; on Debian: "
         "apt-get install openjdk-17-jdk-headless, and fetch again"
      << std::endl;
}

}  // namespace

kcl_parts tested_parts(kcl_version kcl) {
  return kcl == kcl_version::kcl2 ? kcl_parts{"2.7.2", "2.5.4"} : kcl_parts{"3.5.1", "3.1.3"};
}

std::optional<kcl_choice> kcl_choice::parse(std::string_view text) {
  static const std::regex allowed("[23](\\.[0-9]{1,4}\\.[0-9]{1,4})?");
  if (!std::regex_match(text.begin(), text.end(), allowed)) return std::nullopt;
  const auto which = static_cast<kcl_version>(text.front() - '0');
  const bool is_tested = text.size() == 1 || text == tested_parts(which).core;
  return kcl_choice{which, is_tested ? "" : std::string(text)};
}

std::string_view kcl_choice::core_version() const {
  return core.empty() ? tested_parts(which).core : core;
}

std::string kcl_choice::text() const {
  return core.empty() ? std::to_string(static_cast<int>(which)) : core;
}

std::strong_ordering compare_versions(std::string_view version, std::string_view second) {
  const auto numbers_of = [](std::string_view text) {
    std::istringstream unread{std::string(text)};
    std::vector<int> numbers;
    for (int number = 0; unread >> number; unread.ignore()) numbers.push_back(number);
    return numbers;
  };
  return numbers_of(version) <=> numbers_of(second);
}

std::string_view name_of(kcl_version kcl) {
  return kcl == kcl_version::kcl2 ? "KCL 2.x" : "KCL 3.x";
}

const embedded::project& jars_of(kcl_version kcl) {
  return embedded::projects[static_cast<std::size_t>(kcl) - 2];
}

std::vector<fs::path> jars_at(const jar_place& place, const kcl_choice& kcl) {
  if (place.jars.empty()) {
    return files_of(cache_at(place.cache), named_package(kcl).get(),
                    fetch_command(kcl, place.cache));
  }
  const fs::path folder = (fs::absolute(place.jars) / "").lexically_normal().parent_path();
  std::vector<fs::path> files = files_of(folder);
  expect_main_jar(files, kcl.which, folder);
  return files;
}

std::optional<fs::path> own_jar_among(std::vector<fs::path>& files) {
  const std::string name = own_jar(embedded::java_sources.name);
  std::optional<fs::path> found;
  std::erase_if(files, [&](const fs::path& file) {
    if (file.filename() == name) found = file;
    return is_own_jar(file) && file.filename() != name;
  });
  return found;
}

bool is_as_compiled(const fs::path& own_jar) {
  fs::path sums = own_jar;
  sums.replace_extension(".sha256");
  return !fs::exists(sums) || text_of_file(sums.string()).starts_with(hash_of(own_jar));
}

bool has_tested_daemon(const std::vector<fs::path>& files) {
  const auto daemon = std::find_if(files.begin(), files.end(), is_daemon);
  if (daemon == files.end()) return false;
  const std::string line = hash_of(*daemon) + "  amazon-kinesis-client-multilang-";
  return std::any_of(
      embedded::projects.begin(), embedded::projects.end(),
      [&](const auto& project) { return project.checksums.find(line) != std::string_view::npos; });
}

fs::path fetch_jars(const std::string& cache, const kcl_choice& kcl) {
  const named_package wanted(kcl);
  const auto fill = [&](const fs::path& folder) {
    if (!kcl.core.empty()) return bring_other_version(folder, kcl);
    const kcl_parts tested = tested_parts(kcl.which);
    run_maven(folder, pom_with(tested.core, tested.daemon),
              "the daemon of " + std::string(name_of(kcl.which)));
  };
  const std::string fetch = fetch_command(kcl, cache);
  std::vector<fs::path> files = fetch_package(cache_at(cache), wanted.get(), fetch, fill);
  fs::path place = cache_at(cache) / wanted.name;
  expect_main_jar(files, kcl.which, place);
  if (!own_jar_among(files)) add_own_jar(cache_at(cache), wanted.get(), fetch);
  return place;
}

}  // namespace kclxx::host
