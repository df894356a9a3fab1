// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kclxx/processing.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/testing/worker.hpp>

#include "simulation/processing/stream.hpp"
#include "simulation/run.hpp"
#include "simulation/seed_runner.hpp"

namespace kclxx::simulation {

/// program::met() has their names.
enum class fault {
  failed,
  failed_permanently,
  fenced,
  parking_failed,
  lot_locked,
  lot_not_prepared,
  parking_fenced,
  dropped,
  returned_after_stop,
  threw_after_stop,
  timer_threw,
  observer_threw,
  reported_failure,
  outage,
  killed,
  lease_lost,
  lease_lost_silently,
  shutdown_requested,
  input_ends,
  checkpoint_refused,
  late_report,
  repeated,
  stuck,
  circuit_opens,
  session_ends
};

/// What a user writes: a random form of processing, with a policy, a handler, a parking lot, timers
/// and an observer, all of which fail as the seed says.
class program {
 public:
  program(random_source& random, trace& log);
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program();

  [[nodiscard]] processor_factory make_program();
  [[nodiscard]] run_options make_options();
  /// Under which it runs. Precondition: it outlives the last child.
  void set_daemon(testing::worker& daemon) { daemon_ = &daemon; }

  [[nodiscard]] stream& records() { return stream_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  [[nodiscard]] std::chrono::milliseconds linger() const { return gathering_.linger; }

  // The daemon's side.
  void begin_outage(std::chrono::milliseconds time);
  /// So many records will be delivered.
  void expect(std::size_t records);
  /// A completion that a handler took is reported, if there is one.
  void settle_one();
  void settle_all();
  /// A callback waits from here on for all completions.
  void end_waiting();
  /// One that a dead child's handler took, too.
  void settle_late();
  void lose_lease() { child_.is_lease_lost = true; }
  /// Counts it, with what else is true at this moment.
  void note(fault what) const;

  /// The child has left or was killed. The next one meets no faults if it is calm.
  void end_child(bool is_calm);
  /// Errors: violation.
  void check();
  /// Whether user code gave the child a reason to leave with exit_status::callback_failed.
  [[nodiscard]] bool may_fail() const { return child_.may_fail; }

  /// What all runs have met.
  static meetings& met();

 private:
  enum class form { each, batches, batches_with_position, gathering, parallel, completions };
  class lot;
  class watcher;
  class arrivals;
  struct starter;
  /// What is true of the present child.
  struct child_state {
    bool is_calm = false;  // the last one
    bool is_lease_lost = false;
    bool is_fenced = false;
    bool may_fail = false;
    bool can_wait = false;  // completions, for another step
    bool is_circuit_open = false;
    bool is_in_callback = false;
  };

  [[nodiscard]] processor_factory make_form();
  [[nodiscard]] failure_policy random_policy();
  /// Whether a record can be tried again without end: while its circuit is open, too.
  [[nodiscard]] bool has_no_end() const {
    return !policy_.max_attempts || policy_.breaker || declares_;
  }
  [[nodiscard]] parallel_options random_options();
  [[nodiscard]] batch_options random_gathering();
  void expect_outage();
  /// What comes again of a batch that was processed; empty: nothing.
  [[nodiscard]] record_batch repeated(const record_batch& batch);
  [[nodiscard]] bool has_room_for(std::size_t records) const;

  /// What is violated is kept, since exceptions are the policy's.
  template <class Body>
  void guarded(Body body) noexcept;
  void absorb_log();
  void read_log(const std::string& line);

  // Handlers.
  void process(const record& event, const shard_context& shard);
  void process_batch(const record_batch& batch, const shard_context& shard);
  void name_failures(const record_batch& batch, const shard_context& shard);
  void start(completion done, const shard_context& shard, detail::thread_pool& pool);
  void settle(completion done, const shard_context& shard);
  /// `is_first`: of those that the handler is called with.
  void begin(const record& event, const shard_context& shard, bool is_first);
  /// False when the stop token has stopped.
  bool spend_time(const record& event, const shard_context& shard);
  void throw_if_it_fails(const record& event, const shard_context& shard);
  /// The handler has what it wants of the record, and then returns or throws: the stop token has
  /// stopped.
  void leave(const record& event, bool is_in_batch);

  /// What handlers and timers do besides.
  void meddle(const shard_context& shard);

  trace& log_;
  random_source& random_;
  form form_;
  bool meddles_;
  bool declares_;    // an outage
  bool is_crowded_;  // many keys fail, for longer than there are lanes for them
  failure_policy policy_;
  parallel_options options_;
  batch_options gathering_;
  stream stream_;
  testing::worker* daemon_ = nullptr;
  child_state child_;
  std::vector<completion> taken_;
  const shard_context* shard_ = nullptr;  // of taken_
  std::vector<completion> of_dead_children_;
  std::chrono::steady_clock::time_point outage_end_{};
  std::optional<sequence_position> persisted_;
  std::string violated_;
  std::size_t log_read_ = 0;
  std::uint64_t calls_ = 0;
};

}  // namespace kclxx::simulation
