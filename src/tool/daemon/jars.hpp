// SPDX-License-Identifier: Apache-2.0
// The daemon's jars.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tool/daemon/kcl_version.hpp"

namespace kclxx::tool {

/// Where the jars are: in a cache, or in a folder that the user names.
struct jar_place {
  std::string cache;  ///< empty: the user's
  std::string jars;   ///< empty: in the cache
};

/// Those that were compared (see tool/packages.hpp); of a version that was not tested with kclxx,
/// and of a folder of the user's without checksums, all there are. Errors: command_error.
std::vector<std::filesystem::path> jars_at(const jar_place& place, const kcl_choice& kcl);

/// Brings the jars with Maven, unless they are there, and gives their folder. Of a version that is
/// not the tested one no checksums are known. Blocking: until Maven is done. Its output goes to
/// stderr. Errors: command_error.
std::filesystem::path fetch_jars(const std::string& cache, const kcl_choice& kcl, bool is_offline);

}  // namespace kclxx::tool
