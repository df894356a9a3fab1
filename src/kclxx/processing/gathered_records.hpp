// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::processing {

/// Copies of records from several batches, which become one batch. They are copies, since a record
/// keeps the whole line alive that it came in, with its JSON, and a small line a page of memory.
///
/// A part of the memory is used again when the batch that was taken is dropped.
/// Thread safety: none, but the batches may be dropped on any thread.
class gathered_records {
 public:
  gathered_records();
  ~gathered_records();

  /// Errors: std::bad_alloc; then some of the records may have been added.
  void add(const record_batch& batch);
  [[nodiscard]] bool empty() const noexcept { return records() == 0; }
  [[nodiscard]] std::size_t records() const noexcept;
  [[nodiscard]] std::uint64_t data_bytes() const noexcept;
  /// Precondition: !empty().
  [[nodiscard]] sequence_position last_position() const;
  /// An upper bound of the memory that the records take, also while their list grows.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// What add() adds to bytes() for a record that is not the first.
  [[nodiscard]] static std::uint64_t bytes_of(const record& record) noexcept {
    return bytes_for(record.data().size() + record.partition_key().value_or("").size(), 1);
  }
  /// Takes all records.
  [[nodiscard]] record_batch take();
  /// Gives back to the system what is not in use.
  void release_memory();
  /// How much of a dropped batch's memory is kept for texts, and as much again for the records.
  static constexpr std::size_t spare_size = std::size_t{16} << 20;

 private:
  /// `text_bytes` are those of data and keys. A sixteenth of them is added for the unused ends of
  /// chunks, and 64 bytes a record for its sequence number. A record is counted three times: while
  /// the list of records doubles, the old list exists beside it.
  [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t text_bytes,
                                                         std::size_t records) noexcept {
    return text_bytes + text_bytes / 16 + records * (64 + 3 * sizeof(record));
  }
  struct memory;
  struct spare;

  std::shared_ptr<spare> spare_;    // the batches that were taken have it, too
  std::unique_ptr<memory> memory_;  // null while nothing is gathered
  std::optional<std::chrono::milliseconds> millis_behind_latest_;  // of the last batch
};

}  // namespace kclxx::processing
