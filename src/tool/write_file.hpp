// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace kclxx::tool {

/// Writes a whole file.
/// Errors: command_error.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace kclxx::tool
