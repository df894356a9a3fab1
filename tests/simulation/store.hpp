// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kclxx::simulation {

/// Where a user's effects go: a store that admits one writer per shard, and keeps the position with
/// the data. Each call is atomic, and what the store holds survives every process. It stands for
/// the recipe of docs/processing.md, and knows the invariant about effects.
class fenced_store {
 public:
  /// What a writer does between two calls: records from `first` on.
  struct transaction {
    std::uint64_t epoch;  // the writer's
    std::uint64_t epoch_at_begin;
    std::size_t first;
  };

  explicit fenced_store(std::size_t records) : effects_(records) {}

  /// A processor becomes the writer. Returns its epoch.
  std::uint64_t take_over() { return ++epoch_; }
  /// So many of the first records have had their effect.
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] transaction begin(std::uint64_t epoch, std::size_t first) const {
    return {epoch, epoch_, first};
  }
  /// Applies the records up to `end`. Errors: fenced_error; violation.
  void commit(const transaction& what, std::size_t end);
  /// Each record has had its effect.
  void check_finished() const;

 private:
  std::uint64_t epoch_ = 0;
  std::size_t position_ = 0;
  std::vector<int> effects_;
};

}  // namespace kclxx::simulation
