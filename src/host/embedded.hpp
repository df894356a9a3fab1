// SPDX-License-Identifier: Apache-2.0
// Files that the host's commands carry in themselves. The name of a folder in the cache ends with a
// hash of what it is made from, so other versions get another place.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "tool/embedded.hpp"

namespace kclxx::host::embedded {

using tool::embedded::file;

/// A Maven project, and the folder for its jars.
struct project {
  std::string_view folder;  ///< "kcl3-0123456789ab"
  std::string_view pom;
  std::string_view checksums;  ///< of each file, as sha256sum writes them
};

/// The projects of the daemon for KCL 2.x and 3.x; the pom has the versions of 3.x.
extern const std::array<project, 2> projects;
extern const project dynamodb_local;

struct folder {
  std::string_view name;
  std::span<const file> files;
  std::string_view checksums;  ///< of what the folder has in the end
};

/// What npm needs to bring the package of `kclxx local`, and the checksums of its files that run.
extern const folder local_packages;
/// The program, for Node.js, that `kclxx local` becomes; it begins at local.js.
extern const folder local_program;

extern const std::string_view logback;
/// The files of src/host/java; the folder's name is the begin of a hash of all of them.
extern const folder java_sources;

}  // namespace kclxx::host::embedded
