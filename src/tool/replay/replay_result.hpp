// SPDX-License-Identifier: Apache-2.0
// What `kclxx replay` prints at its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tool/command_error.hpp"
#include "tool/replay/summary.hpp"

namespace kclxx::replay {

/// How many parked records there were, and how many of them the child's checkpoints cover.
struct parked_count {
  std::string shard;      ///< the id of the shard in which they were parked
  std::size_t lines = 0;  ///< more than records when some were parked more than once
  std::size_t records = 0;
  std::size_t complete = 0;
};

struct replayed_shard {
  std::string file;
  replay::summary summary;
  /// Why it was not played: the file could not be opened, or the child not started.
  std::string setup_error;
  std::optional<parked_count> parked{};  ///< only with --parked
};

/// The lines that a child left in a run with faults, compared with those of a run without.
struct effect_comparison {
  static constexpr std::size_t max_kept = 100;

  std::uint64_t same_count = 0;      ///< lines that both runs left
  std::uint64_t lost_count = 0;      ///< lines that only the run without faults left
  std::uint64_t extra_count = 0;     ///< lines that the run with faults left in addition
  std::vector<std::string> lost{};   ///< the first lost lines
  std::vector<std::string> extra{};  ///< the first extra lines
  std::string kept_in{};  ///< the folder of both runs' directories; empty when it was removed

  [[nodiscard]] bool is_same() const noexcept { return lost_count == 0 && extra_count == 0; }
};

struct replay_result {
  std::vector<replayed_shard> shards;
  std::optional<effect_comparison> effects;

  /// Whether a fault happened in any shard. If none did, --effects has compared nothing.
  [[nodiscard]] bool had_fault() const noexcept;
  [[nodiscard]] totals total() const;
  /// The time from the first status of any shard to the last one.
  [[nodiscard]] std::chrono::nanoseconds took() const noexcept;
  /// The worst status of a shard: the last one in the order of tool::command_status.
  [[nodiscard]] tool::command_status status() const noexcept;
};

tool::command_status status_of(const replayed_shard& shard) noexcept;

/// For people.
void print_text(std::ostream& out, const replay_result& result);
/// For programs: one JSON object and a newline.
void print_json(std::ostream& out, const replay_result& result);
/// The page of --report, embedded::report_page with its data: one file that needs nothing from
/// anywhere. Precondition: the shards were played with options::keeps_timeline.
void print_report(std::ostream& out, const replay_result& result);

}  // namespace kclxx::replay
