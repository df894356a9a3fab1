// SPDX-License-Identifier: Apache-2.0
// The programs that know how to fetch packages.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tool/embedded.hpp"

namespace kclxx::tool {

// They use the user's settings, mirrors and proxies; offline, only what they downloaded before.
// Their output goes to stderr; `contents` is announced there.

/// Has Maven bring the jars of a project into a folder, together with its pom, and gives Maven's
/// exit status. What Maven prints goes to `output`, if there is one.
/// Blocking: until Maven is done.
/// Errors: command_error with how to get Maven.
int run_maven(const std::filesystem::path& folder, std::string_view pom,
              const std::string& contents, bool is_offline, std::string* output = nullptr);
/// Errors: command_error unless the status is 0.
void expect_maven_success(int status, bool is_offline);

/// All of this for a project whose checksums are known.
void fetch_with_maven(const std::filesystem::path& folder, const tool::embedded::project& project,
                      const std::string& contents, bool is_offline);

/// The folder has a jar whose name begins so.
bool has_jar(const std::filesystem::path& folder, std::string_view beginning);

/// Brings node_modules beside the package.json and package-lock.json that are in a folder.
/// Blocking: until npm is done.
/// Errors: command_error with how to get npm, or that it failed.
void fetch_with_npm(const std::filesystem::path& folder, const std::string& contents,
                    bool is_offline);

}  // namespace kclxx::tool
