// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulation/random.hpp"

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

}  // namespace kclxx::simulation
