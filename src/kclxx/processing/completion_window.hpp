// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::processing {

/// The number of a record in the order of delivery, from 0 on.
using ordinal = std::uint64_t;

/// Which records are complete, from the oldest that is not to the newest. It keeps the batches of
/// these records alive.
///
/// Thread safety: none.
class completion_window {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Adds records, delivered now, at the new end.
  void admit(record_batch records, time_point now);
  /// Precondition: it is in the window and not complete.
  void complete(ordinal number);
  /// Drops what is not complete. The watermark stays. Nothing may be admitted afterwards.
  void clear();
  /// The batches of which all records were complete, or dropped. Their memory is their owner's: it
  /// is given back where nothing is locked.
  [[nodiscard]] std::vector<record_batch> take_passed() {
    return std::exchange(passed_batches_, {});
  }

  /// The oldest record that is not complete; end() if there is none.
  [[nodiscard]] ordinal begin() const noexcept { return begin_; }
  /// The number of the next record to be admitted.
  [[nodiscard]] ordinal end() const noexcept { return end_; }
  [[nodiscard]] bool is_empty() const noexcept { return begin_ == end_; }
  /// Records from begin() on, complete or not.
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
  /// Of these, the ones that are not complete.
  [[nodiscard]] std::size_t incomplete() const noexcept { return incomplete_; }
  /// The records that are not complete, in bytes of data.
  [[nodiscard]] std::uint64_t incomplete_bytes() const noexcept { return incomplete_bytes_; }
  /// What it keeps in memory, in bytes of data: a batch leaves it when its records and all earlier
  /// ones are complete.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Precondition of these two: it is in the window.
  [[nodiscard]] const record& at(ordinal number) const { return *entry_of(number).record; }
  [[nodiscard]] const record_batch& batch_of(ordinal number) const;
  /// When the oldest record that is not complete was delivered. Precondition: there is one.
  [[nodiscard]] time_point oldest_delivery() const { return spans_.front().delivered; }

  /// The position up to which all records are complete; std::nullopt before the first.
  [[nodiscard]] std::optional<sequence_position> watermark() const;

 private:
  struct span {
    ordinal first;
    record_batch records;
    time_point delivered;
    [[nodiscard]] ordinal end() const noexcept { return first + records.size(); }
  };

  struct entry {
    const kclxx::record* record;
    bool is_complete = false;
  };

  [[nodiscard]] const entry& entry_of(ordinal number) const { return entries_[number - begin_]; }
  void pass_front();

  std::deque<span> spans_;
  std::vector<record_batch> passed_batches_;
  std::deque<entry> entries_;  // from begin_ on
  ordinal begin_ = 0;
  ordinal end_ = 0;
  std::size_t incomplete_ = 0;
  std::uint64_t incomplete_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<sequence_position> passed_;  // the last record of the spans that are gone
};

}  // namespace kclxx::processing
