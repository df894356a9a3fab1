// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// The records of one processRecords call, in the shard's order.
///
/// A cheap handle on memory that it shares: a copy costs a reference count. A copy keeps the
/// records and their memory alive, also after process_records has returned. A batch may be empty
/// (the daemon sends empty batches when callProcessRecordsEvenForEmptyRecordList is set).
///
/// Thread safety: distinct copies may be used and dropped from different threads.
class record_batch {
 public:
  /// A batch is a range of records.
  using value_type = record;
  /// A random-access iterator; valid as long as a copy of the batch.
  using const_iterator = const record*;
  /// Records cannot be changed.
  using iterator = const_iterator;

  /// An empty batch.
  record_batch() = default;

  /// A batch over `records`, in the shard's order. For tests and other sources of records.
  /// Lifetime: `owner` keeps the records alive; if it is null, the caller does.
  record_batch(
      std::span<const record> records, std::shared_ptr<const void> owner,
      std::optional<std::chrono::milliseconds> millis_behind_latest = std::nullopt) noexcept
      : owner_(std::move(owner)), records_(records), behind_(millis_behind_latest) {}

  /// The first record.
  [[nodiscard]] const_iterator begin() const noexcept { return records_.data(); }
  /// The place after the last record.
  [[nodiscard]] const_iterator end() const noexcept { return records_.data() + records_.size(); }
  /// How many records there are.
  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  /// Whether there is no record.
  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  /// Preconditions: index < size(); for front and back, not empty().
  /// Lifetime: the reference is valid as long as a copy of this batch.
  [[nodiscard]] const record& operator[](std::size_t index) const noexcept {
    return records_[index];
  }
  /// The first record. Precondition: not empty().
  [[nodiscard]] const record& front() const noexcept { return records_.front(); }
  /// The last record. Precondition: not empty().
  [[nodiscard]] const record& back() const noexcept { return records_.back(); }

  /// How far the reader of this shard was behind its tip; std::nullopt when not known.
  [[nodiscard]] std::optional<std::chrono::milliseconds> millis_behind_latest() const noexcept {
    return behind_;
  }

  /// What keeps the records alive; null for a batch without an owner.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// At most `count` records from `offset` on, sharing this batch's memory. What lies beyond the
  /// end is left out.
  [[nodiscard]] record_batch slice(std::size_t offset, std::size_t count) const {
    offset = std::min(offset, size());
    return {records_.subspan(offset, std::min(count, size() - offset)), owner_, behind_};
  }

  /// The records after `position`, sharing this batch's memory: all of them for TRIM_HORIZON, none
  /// for SHARD_END. Use it to skip records that a store has applied already. It searches in
  /// logarithmic time, since the records are in the shard's order.
  /// Errors: as record::position.
  [[nodiscard]] record_batch after(const sequence_position& position) const {
    const auto first = std::partition_point(
        begin(), end(), [&](const record& candidate) { return candidate.position() <= position; });
    return slice(static_cast<std::size_t>(first - begin()), size());
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const record> records_;
  std::optional<std::chrono::milliseconds> behind_;
};

}  // namespace kclxx
