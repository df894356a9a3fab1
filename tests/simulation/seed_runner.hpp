// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "simulation/journal.hpp"

namespace kclxx::simulation {

/// What happens from one seed. Returns the steps that it took. Errors: violation.
/// Thread safety: called for different seeds at the same time.
using run_of_seed = std::function<std::uint64_t(std::uint64_t seed, journal& log)>;

/// The main function of a simulation: runs as many seeds as the command line asks for, and prints
/// which failed.
int run_seeds(int argc, char** argv, const char* description, const run_of_seed& run);

}  // namespace kclxx::simulation
