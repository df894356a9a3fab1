// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <kclxx/record_processor.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>

#include "daemon_model/shard_consumer.hpp"
#include "simulation/run.hpp"

namespace kclxx::simulation {

/// What a user can do wrong, so that effects come twice.
struct recipe {
  bool locks = true;       // the position is read under a lock that lasts until the commit
  bool leaves_out = true;  // what the stored position covers
};

/// Where a user's effects go: a database that keeps the position of a shard with the data. What it
/// holds survives every process. The user of it is the recipe of docs/exactly-once.md; it knows the
/// invariant about effects.
class store {
 public:
  struct transaction {
    std::uint64_t number;
    std::size_t position;  // so many of the first records have had their effect
  };

  store(std::size_t records, recipe recipe) : how_(recipe), effects_(records) {}

  /// Begins a transaction: locks the position, and reads it. std::nullopt: another one has the
  /// lock. Sometimes the server has ended that one, because its process is dead or suspended.
  std::optional<transaction> begin(random_source& random);
  /// Applies the records from `first` to `end`, and stores `end`. False: the server has ended the
  /// transaction, and nothing has changed. Errors: violation.
  bool commit(const transaction& what, std::size_t first, std::size_t end);
  [[nodiscard]] const recipe& how() const { return how_; }
  /// Each record has had its effect.
  void check_finished() const;

 private:
  recipe how_;
  std::uint64_t begun_ = 0;
  std::optional<std::uint64_t> holder_;  // of the lock
  std::size_t position_ = 0;
  std::vector<int> effects_;
};

/// How likely what goes wrong is, in percent: of each step, or of each occasion.
struct fault_rates {
  unsigned throttle = 0;          // a checkpoint's write fails, retryably
  unsigned fatal = 0;             // … with another error
  unsigned lease_stolen = 0;      // … because another worker took the shard
  unsigned crash = 0;             // the child is killed
  unsigned daemon_death = 0;      // the JVM is killed
  unsigned worker_stop = 0;       // the worker closes the child's input
  unsigned shutdown_request = 0;  // a hand-off, or SIGTERM
  unsigned unknown_action = 0;
  unsigned damaged_line = 0;  // a line from the daemon that cannot be understood
  unsigned callback_throws = 0;
  unsigned callback_hangs = 0;
  unsigned handler_throws = 0;
  unsigned store_refuses = 0;  // because of its fence, also by mistake
};

/// What is counted with the states it meets, in the order of life::met().
enum class fault : std::size_t {
  daemon_dies,
  worker_stops,
  lease_is_stolen,
  store_refuses,
  child_is_killed,
  shutdown_is_requested,
  unknown_action,
  damaged_line,
  checkpoint_is_refused,
  callback_throws,
  timer_throws,
  handler_throws,
};

/// One shard through all lives of those who read it: its records, what is persisted, and what was
/// processed. Knows the invariants about records.
class world {
 public:
  world(random_source& random, recipe recipe);

  std::vector<sequence_position> records;
  bool has_end = true;              // the stream was resharded: the shard ends
  std::vector<bool> was_processed;  // by anyone, ever
  sequence_position persisted{"TRIM_HORIZON"};
  daemon_model::lease lease{persisted};    // taken over by each life
  std::optional<simulation::store> store;  // otherwise effects may be repeated
  run_options options;
  checkpoint_mode mode = checkpoint_mode::automatic;
  fault_rates faults;

  /// The first record after what is persisted.
  [[nodiscard]] std::size_t resume_index() const;
  /// The end was persisted, or there is none and all was persisted.
  [[nodiscard]] bool is_finished() const;

  /// A checkpoint reached the lease table. `done`: this many of the first records are complete in
  /// this life; `may_finish`: the processor has reported that the shard is done.
  void persist(const sequence_position& position, std::size_t done, bool may_finish);
  /// Nothing is lost: what is persisted was processed.
  void check_finished() const;
};

}  // namespace kclxx::simulation
