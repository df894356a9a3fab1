// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kclxx/processing.hpp>
#include <kclxx/testing/daemon.hpp>

#include "simulation/meetings.hpp"
#include "simulation/processing/stream.hpp"
#include "simulation/random.hpp"
#include "simulation/seed_runner.hpp"
#include "simulation/trace.hpp"

namespace kclxx::simulation {

/// One shard that is processed by a random form of processing, under the test kit's daemon, with
/// faults, by one child after the other. The last one meets no fault, and finishes it.
class shard_run {
 public:
  shard_run(std::uint64_t seed, trace& log);
  shard_run(const shard_run&) = delete;
  shard_run& operator=(const shard_run&) = delete;
  ~shard_run();

  /// Returns how often handlers were called. Errors: violation.
  run_length run();
  /// Of all runs.
  static meetings& met();

 private:
  enum class form { each, batches, batches_with_position, parallel, completions };
  enum class fault {  // met() has their names
    failed,
    failed_permanently,
    fenced,
    parking_failed,
    dropped,
    killed,
    lease_lost,
    lease_lost_silently,
    shutdown_requested,
    input_ends,
    checkpoint_refused,
    late_report
  };
  class lot;
  struct starter;

  [[nodiscard]] processor_factory make_form();
  [[nodiscard]] failure_policy random_policy();
  [[nodiscard]] parallel_options random_options();

  // Handlers. What is violated is kept, since their exceptions are the policy's.
  template <class Body>
  void guarded(Body body) noexcept;
  void process(const record& one, const shard_context& shard);
  void process_batch(const record_batch& batch, const shard_context& shard);
  void start(completion one, const shard_context& shard, thread_pool& pool);
  void settle_one(const shard_context& shard);
  void settle_all();
  /// `is_first`: of those that the handler is called with.
  void begin(const record& one, const shard_context& shard, bool is_first);
  void throw_if_it_fails(const record& one);
  void absorb_log();

  /// Counts it, with what else is true at this moment.
  void note(fault what) const;

  // The daemon's side.
  void take_step();
  void deliver();
  [[nodiscard]] bool has_room_for(std::size_t records) const;
  void end_life();
  void start_next();
  void check_empty_window();
  void finish();
  [[nodiscard]] bool is_alive() const;
  void check();
  void check_end();

  trace& log_;
  random_source random_;
  form form_;
  failure_policy policy_;
  parallel_options options_;
  stream stream_;
  std::optional<testing::daemon> daemon_;
  std::vector<completion> taken_;
  const shard_context* shard_ = nullptr;  // of taken_
  std::vector<completion> of_dead_children_;
  std::string violated_;
  std::size_t log_read_ = 0;
  std::size_t killed_ = 0;
  std::uint64_t calls_ = 0;
  bool can_wait_ = false;  // completions, for another step
  bool is_killed_ = false;
  bool is_calm_ = false;  // the last child
  bool was_fenced_ = false;
  bool is_lease_lost_ = false;
};

}  // namespace kclxx::simulation
