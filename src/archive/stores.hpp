// SPDX-License-Identifier: Apache-2.0
// The two stores; open_store() has their contract.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <kclxx/archive/store.hpp>

namespace kclxx::archive {

std::shared_ptr<store> open_folder(const std::filesystem::path& folder);
/// `prefix`: the beginning of the names of all objects, folders or "".
std::shared_ptr<store> open_bucket(std::string bucket, std::string prefix);

}  // namespace kclxx::archive
