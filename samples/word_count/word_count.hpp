// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>

#include <kclxx/kclxx.hpp>

/// Counts the words of each shard in DIRECTORY/<shard id>.counts, each record once.
///
/// The position is in the file, and is read under a lock: what it covers is left out. So a crash,
/// and a worker that has lost the shard and does not know it, do no harm.
/// `flush_interval`: how long records are gathered; 0: no longer than a call of the daemon's.
kclxx::processor_factory word_count(const std::filesystem::path& directory,
                                    std::chrono::seconds flush_interval);
