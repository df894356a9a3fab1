// SPDX-License-Identifier: Apache-2.0
// What a folder with jars must contain.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// Beside the jars: their checksums as sha256sum writes them. Whoever copies the folder takes them
/// along.
inline constexpr const char* checksum_file = "SHA256SUMS";

/// The checksums of all jars in a folder. The program sha256sum reads the files.
/// Errors: command_error.
std::string checksums_of(const std::filesystem::path& folder);

/// One checksum of all files in a folder and below it, their names included, but for the files that
/// npm writes itself. The programs find, sort and sha256sum read them.
/// Errors: command_error.
std::string folder_checksum(const std::filesystem::path& folder);

/// Ends the command unless the jars that Maven has brought are the expected ones; their checksums
/// are then put beside them.
/// Errors: command_error that names a jar.
void expect_jars(const std::filesystem::path& folder, std::string_view checksums);

/// Ends the command when a folder is not as it was fetched. `fetch` is the command that fetches it.
/// Errors: command_error that names the folder and a file.
void expect_as_fetched(const std::filesystem::path& folder, std::string_view expected,
                       const std::string& fetch);

}  // namespace kclxx::tool
