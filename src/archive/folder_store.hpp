// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include <kclxx/archive/store.hpp>

namespace kclxx::archive {

/// The store in a folder; open_store() has its contract.
std::shared_ptr<store> open_folder(const std::filesystem::path& folder);

}  // namespace kclxx::archive
