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

/// Copies of records from several batches, which become one batch. Copies, since a record keeps the
/// whole line alive that it came in, with its JSON, and a small line a page of memory.
///
/// A part of its memory is used again when the batch that was taken is dropped.
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
  /// The most memory that they take, also while their list grows.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// What add() adds to bytes() for one record, but for a first one.
  [[nodiscard]] static std::uint64_t bytes_of(const record& record) noexcept {
    return bytes_for(record.data().size() + record.partition_key().value_or("").size(), 1);
  }
  /// All of them; it is empty then.
  [[nodiscard]] record_batch take();
  /// Gives back to the system what is not in use.
  void release_memory();
  /// Of what is gathered, and of what is kept for more. The batches that were taken are not
  /// counted.
  [[nodiscard]] std::size_t memory_bytes() const;
  /// The most that is kept for texts, and for the records.
  static constexpr std::size_t spare_size = std::size_t{16} << 20;

 private:
  /// Of data and keys with what stays unused beside them. A record has its sequence number, too,
  /// and is counted three times: while their list doubles, the old one is there, too.
  [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t texts,
                                                         std::size_t records) noexcept {
    return texts + texts / 16 + records * (64 + 3 * sizeof(record));
  }
  struct memory;
  struct spare;

  std::shared_ptr<spare> spare_;
  std::unique_ptr<memory> memory_;
  std::optional<std::chrono::milliseconds> behind_;
};

}  // namespace kclxx::processing
