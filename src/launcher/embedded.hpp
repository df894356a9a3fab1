// SPDX-License-Identifier: Apache-2.0
// Files that the tool carries in itself, so that it works wherever it is copied to.
#pragma once

#include <array>
#include <string_view>

namespace kclxx::launcher::embedded {

/// A Maven project of daemon/, and the beginning of its SHA-256 as scripts/lib/fetch has it.
struct project {
  std::string_view folder;
  std::string_view pom;
};

/// For KCL 1.x, 2.x and 3.x.
extern const std::array<project, 3> projects;
extern const std::string_view logback;
extern const std::string_view java_util_logging;

}  // namespace kclxx::launcher::embedded
