// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tool/random_numbers.hpp"

namespace kclxx::replay {

/// A batch of a shard, by its number or by the number of a record in it. Both count from 1.
struct trigger {
  enum class unit { batch, record } in = unit::batch;
  std::uint64_t number = 1;
  bool operator==(const trigger&) const = default;
};

/// What is to go wrong; docs/replay.md describes each.
struct faults {
  // Probabilities from 0 to 1.
  double throttle = 0;
  double dependency = 0;
  double unknown_action = 0;
  std::optional<trigger> shutdown_at{};
  std::optional<trigger> lease_lost_at{};
  std::optional<trigger> end_of_input_at{};
  std::optional<trigger> kill_at{};
  double kill = 0;  ///< below 1
  std::uint64_t seed = 1;

  bool operator==(const faults&) const = default;
};

/// Whether a successor may have to continue, for which the transcript is read again.
[[nodiscard]] inline bool kills(const faults& what) noexcept {
  return what.kill_at.has_value() || what.kill > 0;
}

/// Reads "throttle=0.1,kill-at=12,shutdown-at=record:5000,seed=7".
/// Errors: std::invalid_argument, which names what is wrong.
faults parse_faults(std::string_view text);

/// Draws whether a fault happens, for one shard. The result depends on the seed, the shard's id and
/// the number of the draw alone: the same child meets the same faults, also when other shards are
/// there.
class fault_draws {
 public:
  fault_draws(std::uint64_t seed, std::string_view shard) noexcept;
  /// True with this probability.
  bool draw(double probability) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] bool was_true() const noexcept { return was_true_; }

 private:
  tool::random_numbers random_;
  std::uint64_t count_ = 0;
  bool was_true_ = false;
};

}  // namespace kclxx::replay
