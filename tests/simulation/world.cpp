// SPDX-License-Identifier: Apache-2.0
#include "simulation/world.hpp"

#include <algorithm>
#include <string>

#include "simulation/run.hpp"

namespace kclxx::simulation {

std::optional<store::transaction> store::begin(random_source& random) {
  if (how_.locks && holder_ && !random.chance(20)) return std::nullopt;
  holder_ = ++begun_;
  return transaction{begun_, position_};
}

bool store::commit(const transaction& what, std::size_t first, std::size_t end) {
  if (how_.locks && holder_ != what.number) return false;
  holder_.reset();
  for (std::size_t i = first; i < end; ++i) {
    const std::string record = "effect: that of record " + std::to_string(i);
    if (++effects_[i] > 1) throw violation(record + " came twice");
    if (i != position_++) throw violation(record + " came out of order");
  }
  return true;
}

void store::check_finished() const {
  if (std::find(effects_.begin(), effects_.end(), 0) != effects_.end()) {
    throw violation("effect: that of a record never came");
  }
}

namespace {

const sequence_position shard_end("SHARD_END");

unsigned one_of(random_source& random, std::initializer_list<unsigned> choices) {
  return *(choices.begin() + random.below(choices.size()));
}

}  // namespace

world::world(random_source& random, recipe recipe) {
  const std::size_t count = random.below(24);
  std::uint64_t number = 1 + random.below(120);
  while (records.size() < count) {
    number += 1 + random.below(40);
    // Aggregated records share a number; 9, 99 and 999 are where text order would be wrong.
    const std::size_t subs = random.chance(25) ? 1 + random.below(4) : 1;
    const std::string digits = (random.chance(10) ? "0" : "") + std::to_string(number);
    for (std::size_t sub = 0; sub < subs; ++sub) records.emplace_back(digits, sub);
  }
  was_processed.resize(records.size());
  has_end = random.chance(60);
  mode = random.chance(50) ? checkpoint_mode::automatic : checkpoint_mode::manual;
  options.checkpoint_interval = std::chrono::milliseconds(one_of(random, {0, 5, 200, 5000}));
  options.retry.max_attempts = static_cast<int>(one_of(random, {1, 2, 3, 10}));
  options.shutdown_retry_limit = std::chrono::milliseconds(one_of(random, {0, 300, 10000}));
  faults.throttle = one_of(random, {0, 0, 10, 60});
  faults.fatal = one_of(random, {0, 0, 5});
  faults.lease_stolen = one_of(random, {0, 0, 3});
  faults.crash = one_of(random, {0, 0, 1, 4});
  faults.daemon_death = one_of(random, {0, 0, 1});
  faults.worker_stop = one_of(random, {0, 0, 1});
  faults.shutdown_request = one_of(random, {0, 5, 30});
  faults.unknown_action = one_of(random, {0, 0, 10});
  faults.damaged_line = one_of(random, {0, 0, 0, 4});
  faults.callback_throws = one_of(random, {0, 0, 2, 10});
  faults.callback_hangs = one_of(random, {0, 0, 0, 2});
  faults.handler_throws = one_of(random, {0, 0, 0, 5});
  if (random.chance(50)) store.emplace(records.size(), recipe);
  faults.store_refuses = one_of(random, {0, 0, 0, 1});
}

std::size_t world::resume_index() const {
  return static_cast<std::size_t>(std::upper_bound(records.begin(), records.end(), persisted) -
                                  records.begin());
}

bool world::is_finished() const {
  return has_end ? persisted == shard_end : resume_index() == records.size();
}

void world::persist(const sequence_position& position, std::size_t done, bool may_finish) {
  if (position < persisted) {
    throw violation("backward: " + to_string(position) + " was persisted after " +
                    to_string(persisted));
  }
  if (position == shard_end && !may_finish) {
    throw violation("end: the shard was finished before the processor was done with it");
  }
  const auto after = std::upper_bound(records.begin(), records.end(), position);
  if (static_cast<std::size_t>(after - records.begin()) > done) {
    throw violation("skipped: " + to_string(position) + " was persisted, but only " +
                    std::to_string(done) + " of the records up to it are complete");
  }
  persisted = position;
}

void world::check_finished() const {
  if (store) store->check_finished();
  const auto missing = std::find(was_processed.begin(), was_processed.end(), false);
  if (missing != was_processed.end()) {
    throw violation("lost: record " +
                    to_string(records[static_cast<std::size_t>(missing - was_processed.begin())]) +
                    " was never processed");
  }
}

}  // namespace kclxx::simulation
