// SPDX-License-Identifier: Apache-2.0
// Files that the tool carries in itself, so that it works wherever it is copied to. The name of a
// folder in the cache ends with a hash of what it is made from: other versions get another place.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace kclxx::tool::embedded {

/// A Maven project, and the folder for its jars.
struct project {
  std::string_view folder;  ///< "kcl3-0123456789ab"
  std::string_view pom;
  std::string_view checksums;  ///< of each file, as sha256sum writes them
};

/// The daemon's, for KCL 2.x and 3.x; the pom has the versions of 3.x.
extern const std::array<project, 2> projects;
extern const project dynamodb_local;

struct file {
  std::string_view name;
  std::string_view text;
};

struct folder {
  std::string_view name;
  std::span<const file> files;
  std::string_view checksums;  ///< of what the folder has in the end
};

/// What npm needs to bring the package of `kclxx local`, and the checksums of its files that run.
extern const folder local_packages;
/// The program, for Node.js, that `kclxx local` becomes; it begins at local.js.
extern const folder local_program;

/// What `kclxx new` writes, with {{name}} and the like to be replaced.
extern const std::span<const file> new_project;
extern const std::string_view aws_properties;

/// What `kclxx replay --report` writes, with {{data}} to be replaced.
extern const std::string_view report_page;

extern const std::string_view logback;
/// src/java; its name is the beginning of the hash of all.
extern const folder java_sources;

}  // namespace kclxx::tool::embedded
