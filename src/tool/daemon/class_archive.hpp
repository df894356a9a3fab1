// SPDX-License-Identifier: Apache-2.0
// Java's archive of classes that are parsed and verified already (AppCDS), for a faster start. It
// fits one Java and one folder of jars, and is never needed.
#pragma once

#include <filesystem>
#include <string>

#include "tool/daemon/kcl_version.hpp"

namespace kclxx::tool {

struct class_archive {
  std::string file;     ///< empty: there is none to be used
  std::string why_not;  ///< a sentence for the user; empty: there is one, or this Java has none
};

/// Of these jars. One that was cut off, which would crash Java, is not used.
class_archive find_class_archive(const std::string& java, const std::filesystem::path& jars);

/// Starts the daemon where it reaches nothing, and has Java archive what it has loaded until it
/// fails. Does nothing where find_class_archive finds one, or where this Java makes none.
/// Blocking: some seconds. Errors: command_error.
void make_class_archive(const std::string& java, const std::filesystem::path& jars,
                        kcl_version kcl);

}  // namespace kclxx::tool
