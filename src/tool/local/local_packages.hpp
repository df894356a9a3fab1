// SPDX-License-Identifier: Apache-2.0
// What `kclxx local` needs in the user's cache.
#pragma once

#include <filesystem>

namespace kclxx::tool {

// Each brings something, unless it is there, and gives its folder.
// Errors: command_error.

/// The program for Node.js, which is part of this one. Its beginning is local.js.
std::filesystem::path local_program(const std::filesystem::path& cache);

/// node_modules: a local Kinesis, by npm.
std::filesystem::path fetch_local_packages(const std::filesystem::path& cache, bool is_offline);

/// The jars of DynamoDB Local, by Maven.
std::filesystem::path fetch_dynamodb_local(const std::filesystem::path& cache, bool is_offline);

/// Ends the command when the packages or the jars are not those that were fetched.
/// Errors: command_error that names the folder.
void verify_local(const std::filesystem::path& cache);

}  // namespace kclxx::tool
