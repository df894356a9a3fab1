// SPDX-License-Identifier: Apache-2.0
// What is known after a shard's replay.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/sequence_position.hpp>

namespace kclxx::replay {

/// One action, or several batches put together. Times count from the shard's first line.
struct span {
  std::string action;
  bool repeats = false;                 ///< it can come any number of times, as batches do
  std::chrono::nanoseconds begin{};     ///< the line goes out
  std::chrono::nanoseconds end{};       ///< the status is there
  std::chrono::nanoseconds callback{};  ///< the longest, when it is of batches
  std::optional<std::chrono::milliseconds> behind{};  ///< millisBehindLatest, the largest
  std::uint64_t batches = 1;                          ///< put together in this one
  std::uint64_t delivered = 0;                        ///< records up to here
  std::uint64_t persisted = 0;                        ///< of these, up to the last checkpoint
  std::uint64_t checkpoints = 0;
  std::uint64_t failed_checkpoints = 0;
};

/// What a picture of a replay needs.
class timeline {
 public:
  /// A batch up to this position is out: so many records of the shard by now.
  void deliver(const sequence_position& largest, std::uint64_t records);
  /// A position inside a batch counts as the batch before.
  void persist(const sequence_position& position);
  void add_checkpoint(bool failed) noexcept;
  /// Counts of records and checkpoints are added here.
  void add(span interval);

  /// Of many batches that follow each other, as many become one as it takes for about so few.
  [[nodiscard]] std::vector<span> spans(std::size_t most = 2000) const;

 private:
  std::vector<span> spans_;
  std::deque<std::pair<sequence_position, std::uint64_t>> unpersisted_;  // records up to there
  std::uint64_t delivered_ = 0;
  std::uint64_t persisted_ = 0;
  std::uint64_t checkpoints_ = 0;  // since the last span
  std::uint64_t failed_ = 0;
};

/// A breach or a difference: where in the transcript, and what the child had written.
struct diagnostic {
  std::size_t transcript_line = 0;
  std::string what;
  std::string child_line;  ///< cut short; empty when it is not about a line
};

/// All are counted, the first ones are kept.
class diagnostics {
 public:
  static constexpr std::size_t most_kept = 100;

  void add(std::size_t transcript_line, std::string message, std::string_view child_line = {});
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] const std::vector<diagnostic>& first() const noexcept { return first_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<diagnostic> first_;
};

/// Durations, all of which are kept; below zero they count as zero.
class durations {
 public:
  void add(std::chrono::nanoseconds one);
  void add(const durations& other);

  [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
  /// The duration that this part of all does not exceed; 0 when there is none.
  /// Precondition: 0 < part <= 1.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const;
  [[nodiscard]] std::chrono::nanoseconds max() const { return quantile(1); }

 private:
  std::vector<std::chrono::nanoseconds> all_;
};

/// The counts, of one shard or of several.
struct totals {
  std::uint64_t records = 0;     ///< in batches whose status came
  std::uint64_t data_bytes = 0;  ///< of these records' data
  std::uint64_t line_bytes = 0;  ///< of the actions' lines, sent
  std::uint64_t batches = 0;     ///< whose status came
  std::uint64_t checkpoints_asked = 0;
  std::uint64_t checkpoints_answered = 0;  ///< in any way
  std::uint64_t checkpoints_failed = 0;
  std::uint64_t successors = 0;  ///< children that continued after a kill
  /// From the last byte of a batch's line to its status.
  durations callbacks;

  void add(const totals& other);
};

struct summary {
  std::string shard;  ///< empty when nothing was played
  totals counts;
  /// The one for initialize, with which the child has started, and the last one.
  std::optional<std::chrono::steady_clock::time_point> first_status{};
  std::chrono::steady_clock::time_point last_status{};
  /// Between the two: the time for the records.
  [[nodiscard]] std::chrono::nanoseconds took() const noexcept {
    return first_status ? last_status - *first_status : std::chrono::nanoseconds(0);
  }
  /// Where a successor would begin, after this one; std::nullopt before initialize.
  std::optional<sequence_position> resume;
  replay::timeline timeline;  ///< only when options asked for it
  diagnostics breaches;
  diagnostics differences;
  /// Faults that were asked for and found no place, and the like.
  std::vector<std::string> notes;
  bool had_fault = false;  ///< one that was asked for happened
  /// Why the child failed, if it did: it died, hung, or left with a status.
  std::optional<diagnostic> failure;
  /// What is wrong with the transcript, if anything.
  std::optional<diagnostic> damage;
};

}  // namespace kclxx::replay
