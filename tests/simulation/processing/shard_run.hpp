// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <kclxx/testing/daemon.hpp>

#include "simulation/processing/program.hpp"
#include "simulation/random.hpp"
#include "simulation/seed_runner.hpp"
#include "simulation/trace.hpp"

namespace kclxx::simulation {

/// One shard that a random program processes under the test kit's daemon, with faults, by one child
/// after the other. The last one meets no fault, and finishes it.
class shard_run {
 public:
  shard_run(std::uint64_t seed, trace& log);

  /// Returns how often handlers were called. Errors: violation.
  run_length run();

 private:
  void play();
  void take_step();
  void deliver();
  void end_life();
  void start_next(bool is_last);
  void finish();
  [[nodiscard]] bool is_alive() const { return !is_killed_ && !daemon_.exit_status(); }
  [[nodiscard]] bool is_finished() const;
  void check_end();

  trace& log_;
  random_source random_;
  program program_;
  testing::daemon daemon_;
  bool is_killed_ = false;
};

}  // namespace kclxx::simulation
