// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/script.hpp"

namespace kclxx::oracle {

/// The scripts of a file in cases/, written as README.md describes. The child's well-formed
/// statuses have the names that this daemon wants.
/// Errors: std::runtime_error with the file, and the case's name.
std::vector<script> read_cases(const std::filesystem::path& file,
                               daemon_model::daemon_version version);

}  // namespace kclxx::oracle
