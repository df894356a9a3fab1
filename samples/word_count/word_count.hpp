// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>

#include <kclxx/kclxx.hpp>

/// Counts the words of each shard in DIRECTORY/<shard id>.counts, each record once.
///
/// The position is in the file, and is read under a lock. Records that it covers are left out. So a
/// crash does no harm, nor does a worker that has lost the shard and does not know it.
/// `flush_interval`: how long records are gathered; 0: for one call of the daemon.
kclxx::processor_factory word_count(const std::filesystem::path& directory,
                                    std::chrono::seconds flush_interval);
