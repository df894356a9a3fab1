// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "simulation/meetings.hpp"
#include "simulation/trace.hpp"

namespace CLI {
class App;
}

namespace kclxx::simulation {

/// What one seed took.
struct run_length {
  std::uint64_t steps = 0;
  std::chrono::nanoseconds time{0};  // of the shard's virtual clock
};

/// What happens from one seed. Errors: violation.
/// Thread safety: called for different seeds at the same time.
using run_of_seed = std::function<run_length(std::uint64_t seed, trace& log)>;

/// The main function of a simulation: runs as many seeds as the command line asks for, and prints
/// which failed; with --meetings also which faults met which states.
int run_seeds(int argc, char** argv, const char* description, const run_of_seed& run,
              const meetings& met, const std::function<void(CLI::App&)>& add_options = nullptr);

}  // namespace kclxx::simulation
