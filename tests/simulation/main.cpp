// SPDX-License-Identifier: Apache-2.0
// Runs random lives of random shards, each from its own seed, and prints which seed failed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "simulation/life.hpp"
#include "simulation/world.hpp"

namespace {

using namespace kclxx::simulation;

constexpr int most_lives = 8;

/// One shard from its first reader to its last.
class shard_run {
 public:
  shard_run(std::uint64_t seed, journal& log) : log_(log), random_(seed), shard_(random_) {}

  /// Returns the steps that it took.
  std::uint64_t run() {
    while (!lives_.empty() || started_ == 0 || !shard_.is_finished()) {
      step(nullptr);
      remove_ended();
    }
    shard_.check_finished();
    return steps_;
  }

 private:
  /// A life in its callback is suspended, but for the one that called.
  void step(const life* caller) {
    if (may_start()) start();
    std::vector<life*> candidates;
    for (const auto& one : lives_) {
      const bool is_suspended = one->is_in_user_code() && one.get() != caller;
      if (!one->is_over() && !is_suspended) candidates.push_back(one.get());
    }
    if (!candidates.empty()) candidates[random_.below(candidates.size())]->take_step();
  }

  /// The next life may begin before the last has ended, if that has lost its lease.
  bool may_start() {
    if (started_ > 0 && shard_.is_finished()) return false;
    const bool is_all_over =
        std::all_of(lives_.begin(), lives_.end(), [](const auto& one) { return one->is_over(); });
    return is_all_over ||
           (started_ < most_lives - 1 && lives_.back()->is_lease_lost() && random_.chance(10));
  }

  void start() {
    // The last life meets no faults and no other life, so it finishes; what it may not do is lose
    // what came before.
    if (++started_ > most_lives) {
      throw violation("end: a life without faults did not finish the shard");
    }
    log_.note([&] {
      return "--- life " + std::to_string(started_) + ", after " + to_string(shard_.persisted);
    });
    lives_.push_back(std::make_unique<life>(shard_, random_, started_ < most_lives, log_,
                                            [this](const life& caller) { step(&caller); }));
  }

  void remove_ended() {
    std::erase_if(lives_, [this](const auto& one) {
      if (!one->is_over()) return false;
      one->check_end();
      steps_ += one->steps();
      return true;
    });
  }

  journal& log_;
  random_source random_;
  world shard_;
  std::vector<std::unique_ptr<life>> lives_;
  int started_ = 0;
  std::uint64_t steps_ = 0;
};

std::string failure_of(std::uint64_t seed, journal& log) {
  try {
    shard_run(seed, log).run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

struct totals {
  std::atomic<std::uint64_t> steps = 0;
  std::atomic<std::uint64_t> failures = 0;
  std::mutex mutex;
  std::uint64_t first_failed = 0;
};

void run_share(std::uint64_t first, std::uint64_t end, std::uint64_t stride, totals& all) {
  for (std::uint64_t seed = first; seed < end && all.failures < 5; seed += stride) {
    journal silent(false);
    try {
      all.steps += shard_run(seed, silent).run();
    } catch (const std::exception& error) {
      const std::lock_guard lock(all.mutex);
      if (all.failures++ == 0) all.first_failed = seed;
      std::cout << "seed " << seed << ": " << error.what() << "\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Simulates the dialogue: session, daemon, processor, time and faults, from a seed."};
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;
  unsigned jobs = 2;
  bool fresh = false;
  bool replay = false;
  app.add_option("--runs", runs, "How many seeds, counted up from the first")
      ->capture_default_str();
  auto* first = app.add_option("--seed", seed, "The first seed")->capture_default_str();
  app.add_flag("--fresh", fresh, "Begin with a random seed, which is printed")->excludes(first);
  app.add_option("--jobs", jobs, "Threads")->capture_default_str()->check(CLI::Range(1, 64));
  app.add_flag("--replay", replay, "Run the one seed and print all that happens");
  CLI11_PARSE(app, argc, argv);

  if (replay) {
    journal log(true);
    const std::string failure = failure_of(seed, log);
    for (const std::string& line : log.lines) std::cout << line << "\n";
    std::cout << "seed " << seed << ": " << (failure.empty() ? "fine" : failure) << "\n";
    return failure.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (fresh) seed = (std::uint64_t{std::random_device{}()} << 20U) % 1'000'000'000'000U;
  std::cout << runs << " runs from seed " << seed << std::endl;
  const auto start = std::chrono::steady_clock::now();
  totals all;
  std::vector<std::thread> threads;
  for (unsigned job = 0; job < jobs; ++job) {
    threads.emplace_back([&, job] { run_share(seed + job, seed + runs, jobs, all); });
  }
  for (std::thread& one : threads) one.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (all.failures > 0) {
    std::cout << "failed; to see it: " << argv[0] << " --replay --seed " << all.first_failed
              << "\n";
    return EXIT_FAILURE;
  }
  std::cout << runs << " runs, " << all.steps << " steps, " << took.count() << " s: all fine\n";
  return EXIT_SUCCESS;
}
