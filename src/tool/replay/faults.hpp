// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tool/random_numbers.hpp"

namespace kclxx::replay {

/// What is to go wrong; docs/replay.md describes each.
struct faults {
  // Probabilities from 0 to 1.
  double throttle = 0;
  double dependency = 0;
  // Numbers of batches, from 1 on.
  std::optional<std::uint64_t> shutdown_at{};
  std::optional<std::uint64_t> lease_lost_at{};
  std::optional<std::uint64_t> end_of_input_at{};
  std::optional<std::uint64_t> kill_at{};
  double kill = 0;  ///< below 1
  std::uint64_t seed = 1;

  bool operator==(const faults&) const = default;
};

/// Whether a fault may kill the child. A successor then continues, and reads the transcript again.
[[nodiscard]] inline bool kills(const faults& chosen) noexcept {
  return chosen.kill_at.has_value() || chosen.kill > 0;
}

/// Reads "throttle=0.1,kill-at=12,shutdown-at=20,seed=7".
/// Errors: std::invalid_argument, which names what is wrong.
faults parse_faults(std::string_view text);

/// Draws whether one fault happens to one shard. The result depends on the seed, the name (of shard
/// and fault) and the number of the draw alone: the same child meets the same faults, whatever
/// other shards there are.
class fault_draws {
 public:
  fault_draws(std::uint64_t seed, std::string_view name) noexcept;
  /// True with this probability.
  bool draw(double probability) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] bool was_true() const noexcept { return was_true_; }

 private:
  tool::random_numbers random_;
  std::uint64_t count_ = 0;
  bool was_true_ = false;
};

/// What goes wrong for one shard, and when: it counts the batches and draws.
///
/// Pure. Thread safety: none.
class fault_schedule {
 public:
  explicit fault_schedule(const faults& chosen) : chosen_(chosen) {}

  /// The draws are the shard's own. Before this call no fault that is drawn happens.
  void begin_shard(std::string_view id);
  /// The shard begins anew; the draws continue where they are. A kill-at that has happened does not
  /// happen again.
  void begin_successor() noexcept;
  /// Counts records that the successor does not get again: a whole batch, or the first records of
  /// one.
  void skip(std::uint64_t records, bool is_whole_batch) noexcept;

  /// Whether the daemon asks the child to shut down in place of the next batch, which ends the
  /// dialogue. May be asked again.
  [[nodiscard]] bool shutdown_replaces_batch() noexcept;

  void begin_batch(std::uint64_t records) noexcept;
  /// The lease was lost at the batch that was begun last: its checkpoints fail, and no batch
  /// follows.
  [[nodiscard]] bool is_lease_lost() const noexcept { return happened_.test(lease_loss); }
  enum class after_line { nothing, kill, end_of_input };
  /// What happens as soon as the batch's line is written; the second time it is nothing.
  [[nodiscard]] after_line take_what_follows_line() noexcept;

  /// True: the child is killed now, and the checkpoint that it asks for is not persisted.
  [[nodiscard]] bool draw_kill() noexcept;
  /// The daemon's name for what a checkpoint fails with now, if it does.
  [[nodiscard]] std::optional<std::string> checkpoint_failure();

  /// The number of records in all batches that were begun.
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// A note for each fault that was asked for and did not happen.
  [[nodiscard]] std::vector<std::string> unmet() const;
  [[nodiscard]] bool had_fault() const noexcept;

 private:
  /// The faults that happen at the batch of a number.
  enum batch_fault { shutdown, lease_loss, end_of_input, kill };

  [[nodiscard]] bool is_at_next_batch(batch_fault fault) const noexcept;
  bool draw(std::size_t fault_index) noexcept;

  faults chosen_;
  std::vector<fault_draws> draws_;  ///< for throttle, dependency and kill, in this order
  std::uint64_t batches_ = 0;
  std::uint64_t records_ = 0;
  after_line after_line_ = after_line::nothing;  ///< of the batch that was begun last
  std::bitset<4> happened_;                      ///< by batch_fault
};

struct options {
  /// Checkpoints fail also where they failed in the transcript, and not only where the child is
  /// wrong.
  bool repeats_failures = true;
  /// Each status and checkpoint, with its position, is compared with the recorded one in its place.
  bool compares = false;
  bool keeps_timeline = false;
  replay::faults faults{};
  /// The time limit of each action, and of the child's exit after the end of its input.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

}  // namespace kclxx::replay
