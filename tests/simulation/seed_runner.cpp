// SPDX-License-Identifier: Apache-2.0
#include "simulation/seed_runner.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <mutex>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

namespace kclxx::simulation {

void meetings::print(std::ostream& out) const {
  out << "| |";
  for (const std::string_view state : states_) out << " " << state << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < states_.size(); ++i) out << "--:|";
  for (std::size_t fault = 0; fault < faults_.size(); ++fault) {
    out << "\n| " << faults_[fault] << " |";
    for (std::size_t state = 0; state < states_.size(); ++state) {
      out << " " << count_of(fault, state) << " |";
    }
  }
  out << "\n";
}

std::set<std::string_view> meetings::never_seen() const {
  std::set<std::string_view> names(faults_.begin(), faults_.end());
  names.insert(states_.begin(), states_.end());
  for (std::size_t fault = 0; fault < faults_.size(); ++fault) {
    for (std::size_t state = 0; state < states_.size(); ++state) {
      if (count_of(fault, state) == 0) continue;
      names.erase(faults_[fault]);
      names.erase(states_[state]);
    }
  }
  return names;
}

namespace {

struct totals {
  std::atomic<std::uint64_t> steps = 0;
  std::atomic<std::int64_t> simulated_seconds = 0;
  std::atomic<std::uint64_t> failures = 0;
  std::mutex mutex;
  std::uint64_t first_failed = 0;
};

void run_share(const run_of_seed& run, std::uint64_t first, std::uint64_t end, std::uint64_t stride,
               totals& sums) {
  for (std::uint64_t seed = first; seed < end && sums.failures < 5; seed += stride) {
    trace silent(false);
    try {
      const run_length took = run(seed, silent);
      sums.steps += took.steps;
      sums.simulated_seconds += std::chrono::duration_cast<std::chrono::seconds>(took.time).count();
    } catch (const std::exception& error) {
      const std::lock_guard lock(sums.mutex);
      if (sums.failures++ == 0) sums.first_failed = seed;
      std::cout << "seed " << seed << ": " << error.what() << "\n";
    }
  }
}

}  // namespace

int run_seeds(int argc, char** argv, const char* description, const run_of_seed& run,
              const meetings& met, const std::function<void(CLI::App&)>& add_options) {
  CLI::App app{description};
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
  unsigned jobs = 2;
  bool fresh = false;
  bool replay = false;
  bool print_meetings = false;
  app.add_option("--runs", runs, "How many seeds, counted up from the first")
      ->capture_default_str();
  auto* first = app.add_option("--seed", seed, "The first seed")->capture_default_str();
  app.add_flag("--fresh", fresh, "Begin with a random seed, which is printed")->excludes(first);
  app.add_option("--jobs", jobs, "Threads")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_flag("--replay", replay, "Run the one seed and print all that happens");
  app.add_flag("--meetings", print_meetings,
               "Print how often each fault met each state, and fail when a fault or a state was "
               "never seen");
  if (add_options) add_options(app);
  CLI11_PARSE(app, argc, argv);

  if (replay) {
    trace log(true);
    try {
      run(seed, log);
    } catch (const std::exception& error) {
      std::cout << "seed " << seed << ": " << error.what() << "\n";
      return EXIT_FAILURE;
    }
    std::cout << "seed " << seed << ": fine\n";
    return EXIT_SUCCESS;
  }
  if (fresh) seed = (std::uint64_t{std::random_device{}()} << 20U) % 1'000'000'000'000U;
  std::cout << runs << " runs from seed " << seed << std::endl;
  const auto start = std::chrono::steady_clock::now();
  totals sums;
  std::vector<std::thread> threads;
  for (unsigned job = 0; job < jobs; ++job) {
    threads.emplace_back([&, job] { run_share(run, seed + job, seed + runs, jobs, sums); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (sums.failures > 0) {
    std::cout << "failed; to see it: " << argv[0] << " --replay --seed " << sums.first_failed
              << "\n";
    return EXIT_FAILURE;
  }
  if (print_meetings) {
    met.print(std::cout);
    const auto never_seen = met.never_seen();
    for (const std::string_view name : never_seen) std::cout << name << ": was never seen\n";
    if (!never_seen.empty()) return EXIT_FAILURE;
  }
  std::cout << runs << " runs, " << sums.steps << " steps, " << sums.simulated_seconds / 3600
            << " simulated hours, " << took.count() << " s: all fine\n";
  return EXIT_SUCCESS;
}

}  // namespace kclxx::simulation
