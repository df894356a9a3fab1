// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/run.hpp"

namespace CLI {
class App;
}

namespace kclxx::simulation {

/// How often each fault came while each state held, over all seeds.
///
/// Thread safety: count() from any thread.
class meetings {
 public:
  meetings(std::vector<std::string_view> faults, std::vector<std::string_view> states)
      : faults_(std::move(faults)),
        states_(std::move(states)),
        counts_(faults_.size() * states_.size()) {}

  void count(std::size_t fault, std::size_t state) {
    counts_[fault * states_.size() + state].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::string fault(std::size_t index) const { return std::string(faults_[index]); }
  /// Prints a table in Markdown.
  void print(std::ostream& out) const;
  /// The faults that met no state, and the states that met no fault: a gap in the simulation.
  [[nodiscard]] std::set<std::string_view> never_seen() const;

 private:
  [[nodiscard]] std::uint64_t count_of(std::size_t fault, std::size_t state) const {
    return counts_[fault * states_.size() + state];
  }

  std::vector<std::string_view> faults_;
  std::vector<std::string_view> states_;
  std::vector<std::atomic<std::uint64_t>> counts_;  ///< by fault and state
};

/// How long the run of a seed is.
struct run_length {
  std::uint64_t steps = 0;
  std::chrono::nanoseconds time{0};  ///< by the shard's virtual clock
};

/// Runs one seed. Errors: violation.
/// Thread safety: it is called for different seeds at the same time.
using run_of_seed = std::function<run_length(std::uint64_t seed, trace& log)>;

/// The main function of a simulation: runs as many seeds as the command line asks for, and prints
/// those that fail. With --meetings it also prints which faults met which states, and fails when a
/// fault or a state was not tried.
int run_seeds(int argc, char** argv, const char* description, const run_of_seed& run,
              const meetings& met, const std::function<void(CLI::App&)>& add_options = nullptr);

}  // namespace kclxx::simulation
