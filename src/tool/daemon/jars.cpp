// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/jars.hpp"

#include <algorithm>
#include <iostream>
#include <string_view>

#include <boost/algorithm/string/replace.hpp>

#include "tool/command_error.hpp"
#include "tool/packages.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

std::string with_version(std::string_view pom, std::string_view tested, std::string_view wanted) {
  return boost::replace_all_copy(std::string(pom), ">" + std::string(tested) + "<",
                                 ">" + std::string(wanted) + "<");
}

/// A core of another version than the tested one, under the daemon of the same version if there is
/// one: of the daemon fewer versions are published.
void bring_other_version(const fs::path& folder, const kcl_choice& kcl, bool is_offline) {
  const kcl_parts tested = tested_parts(kcl.which);
  const std::string pom = with_version(jars_of(kcl.which).pom, tested.core, kcl.core);
  std::string output;
  const auto bring = [&](std::string_view daemon) {
    output.clear();
    return run_maven(folder, with_version(pom, tested.daemon, daemon),
                     "KCL " + kcl.core + " with the daemon " + std::string(daemon), is_offline,
                     &output);
  };
  bool is_there = bring(kcl.core);
  // Any other failure, as of a mirror or offline, does not tell which daemons there are.
  if (!is_there && output.find("Could not find artifact") != std::string::npos) {
    std::cerr << "There is no daemon " << kcl.core << "; the tested one is fetched." << std::endl;
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
    is_there = bring(tested.daemon);
  }
  std::cerr << output;
  if (is_there) return;
  cannot_set_up(is_offline ? "Maven's local repository has not all of KCL " + kcl.core +
                                 "; which daemons there are is not known offline"
                           : "mvn failed; see its last lines");
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

void expect_main_jar(const std::vector<fs::path>& files, kcl_version kcl, const fs::path& folder) {
  const bool is_there = std::any_of(files.begin(), files.end(), [&](const fs::path& file) {
    return file.filename().string().starts_with(main_jar(kcl));
  });
  if (is_there) return;
  cannot_set_up("the jars of " + std::string(name_of(kcl)) + " are not in " + folder.string());
}

}  // namespace

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

fs::path fetch_jars(const std::string& cache, const kcl_choice& kcl, bool is_offline) {
  const named_package wanted(kcl);
  const auto fill = [&](const fs::path& folder) {
    if (!kcl.core.empty()) return bring_other_version(folder, kcl, is_offline);
    run_maven(folder, jars_of(kcl.which).pom, "the daemon of " + std::string(name_of(kcl.which)),
              is_offline);
  };
  const auto files = fetch_package(cache_at(cache), wanted.get(), fetch_command(kcl, cache), fill);
  fs::path place = cache_at(cache) / wanted.name;
  expect_main_jar(files, kcl.which, place);
  return place;
}

}  // namespace kclxx::tool
