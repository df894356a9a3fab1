// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::processing {

/// The number of a record in the order of arrival, from 0 on.
using arrival = std::uint64_t;

/// Which records are complete, from the oldest that is not (the watermark) to the newest. A bit for
/// each record, a position for each batch: completing a record costs the same whatever the order.
/// It keeps the batches of these records alive.
///
/// Thread safety: none.
class completion_window {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Adds records at the new end, all of which arrived now.
  void admit(record_batch records, time_point now);
  /// Precondition: it is in the window and not complete.
  void complete(arrival which);
  /// Drops what is not complete. The watermark's position stays. Nothing may be admitted
  /// afterwards.
  void clear();

  /// All records before this one are complete.
  [[nodiscard]] arrival watermark() const noexcept { return watermark_; }
  /// The number of the next record to arrive.
  [[nodiscard]] arrival end() const noexcept { return end_; }
  [[nodiscard]] bool is_empty() const noexcept { return watermark_ == end_; }
  /// Records from the watermark on, complete or not.
  [[nodiscard]] std::size_t size() const noexcept { return end_ - watermark_; }
  /// Of these, the ones that are not complete.
  [[nodiscard]] std::size_t incomplete() const noexcept { return incomplete_; }
  /// The records that are not complete, in bytes of data.
  [[nodiscard]] std::uint64_t incomplete_bytes() const noexcept { return incomplete_bytes_; }
  /// What it keeps in memory, in bytes of data: a batch leaves it when its records and all earlier
  /// ones are complete.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Precondition of these two: it is in the window.
  [[nodiscard]] const record& at(arrival which) const;
  [[nodiscard]] const record_batch& batch_of(arrival which) const;
  /// When the oldest record arrived that is not complete. Precondition: there is one.
  [[nodiscard]] time_point oldest_arrival() const { return spans_.front().arrived; }

  /// The position up to which all records are complete; std::nullopt before the first.
  [[nodiscard]] std::optional<sequence_position> position() const;
  /// Of the newest record that is complete.
  [[nodiscard]] std::optional<sequence_position> highest_complete() const;

 private:
  struct span {
    arrival first;
    record_batch records;
    time_point arrived;
    [[nodiscard]] arrival end() const noexcept { return first + records.size(); }
  };

  [[nodiscard]] std::deque<span>::const_iterator span_of(arrival which) const;
  [[nodiscard]] std::size_t capacity() const noexcept { return bits_.size() * 64; }
  [[nodiscard]] std::uint64_t& word_of(arrival which) noexcept {
    return bits_[which / 64 % bits_.size()];
  }
  void grow(std::size_t records);
  void advance();
  void pass_whole_spans();

  std::deque<span> spans_;
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(1);  // a ring; a power of two
  arrival watermark_ = 0;
  arrival end_ = 0;
  arrival highest_end_ = 0;  // after the newest complete record
  std::size_t incomplete_ = 0;
  std::uint64_t incomplete_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<sequence_position> passed_;  // the last record of the spans that are gone
};

}  // namespace kclxx::processing
