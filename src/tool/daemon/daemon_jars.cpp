// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/daemon_jars.hpp"

#include <string>

#include "tool/daemon/package_cache.hpp"
#include "tool/daemon/package_programs.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

fs::path place_of_jars(const fs::path& cache, tool::kcl_version which) {
  return fs::absolute(cache) / tool::jars_of(which).folder;
}

bool has_jars(const fs::path& folder, tool::kcl_version which) {
  return has_jar(folder, tool::main_jar(which));
}

fs::path fetch_jars(const fs::path& cache, tool::kcl_version which, bool is_offline) {
  const fs::path place = place_of_jars(cache, which);
  const auto fill = [&](const fs::path& folder) {
    fetch_with_maven(folder, tool::jars_of(which),
                     "the daemon of " + std::string(tool::name_of(which)), is_offline);
  };
  fetch_folder({place, [&](const fs::path& folder) { return has_jars(folder, which); }, fill});
  return place;
}

}  // namespace kclxx::tool
