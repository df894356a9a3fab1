// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tool/daemon/kcl_version.hpp"

namespace kclxx::tool {

/// The folder in the cache that is for the jars of this version, whether it is there or not.
std::filesystem::path place_of_jars(const std::filesystem::path& cache, tool::kcl_version which);

/// The folder has the daemon's own jar. It is there completely or not at all: see fetch_jars.
bool has_jars(const std::filesystem::path& folder, tool::kcl_version which);

/// Brings the jars with Maven, unless they are there, and gives their folder (see
/// package_cache.hpp). Blocking: until Maven is done. Its output goes to stderr. Errors:
/// command_error.
std::filesystem::path fetch_jars(const std::filesystem::path& cache, tool::kcl_version which,
                                 bool is_offline);

}  // namespace kclxx::tool
