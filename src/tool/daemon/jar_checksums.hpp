// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace kclxx::tool {

/// Compares the files that Maven brought into `folder` with `expected`, lines as sha256sum writes
/// them. The program sha256sum reads the files.
/// Errors: command_error that names a file which differs, is missing or is not in the list.
void verify_jars(const std::filesystem::path& folder, std::string_view expected);

}  // namespace kclxx::tool
