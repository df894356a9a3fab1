// SPDX-License-Identifier: Apache-2.0
// Random shards, each processed by one of the forms of kclxx/processing.hpp.
#include "simulation/processing/shard_run.hpp"
#include "simulation/seed_runner.hpp"

int main(int argc, char** argv) {
  using namespace kclxx::simulation;
  return run_seeds(
      argc, argv, "Simulates processing: failures, handlers side by side, and faults, from a seed.",
      [](std::uint64_t seed, trace& log) { return shard_run(seed, log).run(); }, program::met());
}
