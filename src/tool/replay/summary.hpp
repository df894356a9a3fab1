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
  std::chrono::nanoseconds begin{};     ///< when the line goes out
  std::chrono::nanoseconds end{};       ///< when the status is there
  std::chrono::nanoseconds callback{};  ///< the longest one of the batches
  std::optional<std::chrono::milliseconds> behind{};  ///< the largest millisBehindLatest
  std::uint64_t batches = 1;                          ///< how many are put together here
  std::uint64_t delivered = 0;  ///< how many records of the shard were delivered at the end
  std::uint64_t persisted = 0;  ///< how many of these the last checkpoint covers
  std::uint64_t checkpoints = 0;
  std::uint64_t failed_checkpoints = 0;
};

/// What a picture of a replay needs.
class timeline {
 public:
  /// A batch with records up to this position is sent, and `records` of the shard with it.
  void deliver(const sequence_position& largest, std::uint64_t records);
  /// Everything up to this position is persisted. Inside a batch it counts as the batch before.
  void persist(const sequence_position& position);
  void add_checkpoint(bool failed) noexcept;
  /// Adds the span of an action, with the records and checkpoints that were counted until now.
  void add(span interval);

  /// The spans in order, with neighbouring batches put together until about `max_spans` are left.
  [[nodiscard]] std::vector<span> spans(std::size_t max_spans = 2000) const;

 private:
  /// A batch that no checkpoint covers: its largest position, and how many records of the shard
  /// were delivered up to it.
  using unpersisted_batch = std::pair<sequence_position, std::uint64_t>;

  std::vector<span> spans_;
  std::deque<unpersisted_batch> unpersisted_;
  std::uint64_t delivered_records_ = 0;
  std::uint64_t persisted_records_ = 0;
  std::uint64_t checkpoints_ = 0;         ///< since the last span
  std::uint64_t failed_checkpoints_ = 0;  ///< since the last span
};

/// A breach or a difference: where in the transcript, and what the child had written.
struct diagnostic {
  std::size_t transcript_line = 0;
  std::string what;
  std::string child_line;  ///< cut short; empty when it is not about a line
};

/// Counts breaches or differences, and keeps the first ones.
class diagnostics {
 public:
  static constexpr std::size_t max_kept = 100;

  void add(std::size_t transcript_line, std::string message, std::string_view child_line = {});
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] const std::vector<diagnostic>& first() const noexcept { return first_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<diagnostic> first_;
};

/// Keeps durations. One below zero counts as zero.
class durations {
 public:
  void add(std::chrono::nanoseconds duration);
  void add(const durations& source);

  [[nodiscard]] std::size_t count() const noexcept { return kept_.size(); }
  /// The duration that this part of the durations does not exceed; 0 when none is kept.
  /// Precondition: 0 < part <= 1.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const;
  [[nodiscard]] std::chrono::nanoseconds max() const { return quantile(1); }

 private:
  std::vector<std::chrono::nanoseconds> kept_;
};

/// The counts, of one shard or of several.
struct totals {
  std::uint64_t records = 0;     ///< in batches whose status came
  std::uint64_t data_bytes = 0;  ///< the data of these records, without base64
  std::uint64_t line_bytes = 0;  ///< the lines of all actions that were sent
  std::uint64_t batches = 0;     ///< whose status came
  std::uint64_t checkpoints_asked = 0;
  std::uint64_t checkpoints_answered = 0;  ///< with success or an error
  std::uint64_t checkpoints_failed = 0;    ///< answered with an error
  std::uint64_t successors = 0;            ///< children that continued after a kill
  /// The times from the last byte of a batch's line to its status.
  durations callbacks;

  void add(const totals& source);
};

struct summary {
  std::string shard;  ///< empty when nothing was played
  totals counts;
  /// When the status of initialize came, with which the child has started, and when the last one.
  std::optional<std::chrono::steady_clock::time_point> first_status{};
  std::chrono::steady_clock::time_point last_status{};
  /// The time between the two, which the records took.
  [[nodiscard]] std::chrono::nanoseconds took() const noexcept {
    return first_status ? last_status - *first_status : std::chrono::nanoseconds(0);
  }
  /// A successor would begin after this position; std::nullopt before initialize.
  std::optional<sequence_position> resume;
  replay::timeline timeline;  ///< only when options asked for it
  diagnostics breaches;
  diagnostics differences;
  /// A note for each fault that was asked for and did not happen.
  std::vector<std::string> notes;
  bool had_fault = false;  ///< a fault that was asked for happened
  /// Why the child failed, if it did: it died, hung, or left with a status.
  std::optional<diagnostic> failure;
  /// What is wrong with the transcript, if anything.
  std::optional<diagnostic> damage;
};

}  // namespace kclxx::replay
