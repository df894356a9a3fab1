// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx::processing {

/// Copies of records from several batches, which become one batch. Copies, since a record keeps the
/// whole line alive that it came in, with its JSON, and a small line a page of memory.
///
/// Thread safety: none, but the batches may be dropped on any thread.
class gathered_records {
 public:
  /// Errors: std::bad_alloc; then some of the records may have been added.
  void add(const record_batch& batch) {
    if (!memory_) memory_ = std::make_shared<memory>();
    for (const record& one : batch) {
      record::fields kept = one.as_fields();
      // All fields: a further one does not compile unhandled.
      [[maybe_unused]] auto& [data, partition_key, sequence_number, sub_sequence, arrival] = kept;
      if (data) data = memory_->keep(*data);
      if (partition_key) partition_key = memory_->keep(*partition_key);
      sequence_number = memory_->keep(sequence_number);
      memory_->records.emplace_back(kept);
      data_bytes_ += one.data().size();
      bytes_ += bytes_of(one);
    }
    behind_ = batch.millis_behind_latest();
  }
  [[nodiscard]] bool empty() const noexcept { return records() == 0; }
  [[nodiscard]] std::size_t records() const noexcept {
    return memory_ ? memory_->records.size() : 0;
  }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return data_bytes_; }
  /// Precondition: !empty().
  [[nodiscard]] sequence_position last_position() const {
    return memory_->records.back().position();
  }
  /// The most memory that they take, also while their list grows.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return empty() ? 0 : memory::chunk_size + bytes_;
  }
  /// What they take now.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return memory_ ? memory_->allocated + memory_->records.capacity() * sizeof(record) : 0;
  }
  /// What add() adds to bytes() for one record, but for a first one: with its sequence number, and
  /// what stays unused beside it. The record is counted three times: while the list doubles, the
  /// old one is there, too.
  [[nodiscard]] static std::uint64_t bytes_of(const record& one) noexcept {
    const std::size_t texts = one.data().size() + one.partition_key().value_or("").size();
    return texts + texts / 16 + 64 + 3 * sizeof(record);
  }
  /// All of them; it is empty then.
  [[nodiscard]] record_batch take() {
    const auto taken = std::exchange(memory_, nullptr);
    data_bytes_ = bytes_ = 0;
    return {taken->records, taken, behind_};
  }

 private:
  struct memory {
    static constexpr std::size_t chunk_size = std::size_t{256} << 10;

    std::string_view keep(std::string_view text) {
      if (text.empty()) return "";
      char* const to = room_for(text.size());
      std::memcpy(to, text.data(), text.size());
      return {to, text.size()};
    }
    /// A large text has a chunk of its own, so that at most a part in 32 of each is left unused.
    char* room_for(std::size_t size) {
      if (size > chunk_size / 32) return new_chunk(size);
      if (size > left) {
        place = new_chunk(chunk_size);
        left = chunk_size;
      }
      left -= size;
      return std::exchange(place, place + size);
    }
    char* new_chunk(std::size_t size) {
      allocated += size;
      // NOLINTNEXTLINE(modernize-avoid-c-arrays)
      return chunks.emplace_back(std::make_unique_for_overwrite<char[]>(size)).get();
    }

    std::vector<record> records;
    std::vector<std::unique_ptr<char[]>> chunks;  // NOLINT(modernize-avoid-c-arrays)
    std::size_t allocated = 0;                    // of the chunks
    char* place = nullptr;
    std::size_t left = 0;  // from there to the end of its chunk
  };

  std::shared_ptr<memory> memory_;
  std::uint64_t data_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<std::chrono::milliseconds> behind_;
};

}  // namespace kclxx::processing
