// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
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

/// What a picture of a replay needs, in bounded memory: when there are too many spans, batches
/// that follow each other become one.
class timeline {
 public:
  static constexpr std::size_t most_spans = 2000;

  /// A batch up to this position is out: so many records of the shard by now.
  void deliver(const sequence_position& largest, std::uint64_t records);
  /// A position inside a batch counts as the batch before.
  void persist(const sequence_position& position);
  void add_checkpoint(bool failed) noexcept;
  /// Counts of records and checkpoints are added here.
  void add(span interval);

  [[nodiscard]] const std::vector<span>& spans() const noexcept { return spans_; }

 private:
  /// Batches that follow each other, up to this position.
  struct group {
    sequence_position largest;
    std::uint64_t records;
    std::uint64_t members;
  };

  [[nodiscard]] bool can_join(const span& interval) const noexcept;
  static void join(span& first, const span& next);
  void downsample();

  std::vector<span> spans_;
  std::uint64_t batches_each_ = 1;
  std::deque<group> unpersisted_;
  std::uint64_t group_size_ = 1;
  std::uint64_t delivered_ = 0;
  std::uint64_t persisted_ = 0;
  std::uint64_t checkpoints_ = 0;  // since the last span
  std::uint64_t failed_ = 0;
};

}  // namespace kclxx::replay
