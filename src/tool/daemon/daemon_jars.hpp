// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "tool/daemon/kcl_version.hpp"

namespace kclxx::tool {

/// The folder in the cache that is for the jars of this version, whether it is there or not.
std::filesystem::path place_of_jars(const std::filesystem::path& cache, const kcl_choice& kcl);

/// A folder that the user names: absolute, and the same text however it was written.
std::filesystem::path named_folder(const std::string& name);

/// The folder has the daemon's own jar. It is there completely or not at all: see fetch_jars.
bool has_jars(const std::filesystem::path& folder, kcl_version kcl);

struct jar_request {
  kcl_choice kcl;
  std::filesystem::path cache;
  std::string checksums;  ///< a file with those of another fetch; empty: none
  bool is_offline = false;
};

/// Brings the jars with Maven, unless they are there, and gives their folder (see
/// package_cache.hpp). Those of a version that is not the tested one have no expected checksums,
/// unless the request names some: they are recorded. Blocking: until Maven is done. Its output goes
/// to stderr. Errors: command_error.
std::filesystem::path fetch_jars(const jar_request& request);

/// Ends the command when the jars are not those that were fetched. A folder of somebody else's,
/// without checksums, is taken as it is.
/// Errors: command_error.
void verify_jars(const std::filesystem::path& folder, const kcl_choice& kcl, bool is_in_cache);

}  // namespace kclxx::tool
