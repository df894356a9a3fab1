// SPDX-License-Identifier: Apache-2.0
// Allocations that are counted or fail. A test that uses this has allocations.cpp as a source.
#pragma once

#include <atomic>
#include <cstddef>

namespace kclxx::test {

/// Called for each allocation of the program, on its thread: true when it fails. It may not
/// allocate.
extern std::atomic<bool (*)(std::size_t size)> does_allocation_fail;

}  // namespace kclxx::test
