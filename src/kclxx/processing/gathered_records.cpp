// SPDX-License-Identifier: Apache-2.0
#include "processing/gathered_records.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace kclxx::processing {

/// Texts lie in chunks, which do not move when more is added. A large text has memory of its own,
/// so that all chunks have one size, and at most a quarter of each is left unused.
struct gathered_records::memory {
  using chunk = std::unique_ptr<char[]>;  // NOLINT(modernize-avoid-c-arrays)
  static constexpr std::size_t chunk_size = std::size_t{256} << 10;

  std::string_view keep(std::string_view text) {
    char* const place = room_for(text.size());
    std::memcpy(place, text.data(), text.size());
    return {place, text.size()};
  }
  /// A missing text is not an empty one.
  std::optional<std::string_view> keep(const std::optional<std::string_view>& text) {
    return text ? std::optional(keep(*text)) : std::nullopt;
  }
  void keep(const record& one) {
    const auto [data, partition_key, sequence_number, sub_sequence_number, arrival] =
        one.as_fields();
    records.emplace_back(record::fields{keep(data), keep(partition_key), keep(sequence_number),
                                        sub_sequence_number, arrival});
  }
  char* room_for(std::size_t size) {
    if (size > chunk_size / 4) {
      char* const place = large.emplace_back(make_chunk(size)).get();
      large_bytes += size;
      return place;
    }
    if (used == 0 || size > chunk_size - filled) {
      if (used == chunks.size()) chunks.push_back(make_chunk(chunk_size));
      ++used;
      filled = 0;
    }
    char* const place = chunks[used - 1].get() + filled;
    filled += size;
    return place;
  }
  /// Keeps a part of the memory for the next records.
  void clear() noexcept {
    large.clear();
    large_bytes = used = filled = 0;
    chunks.resize(std::min(chunks.size(), spare_size / chunk_size));
    records.clear();
    if (records.capacity() > spare_size / sizeof(record)) std::vector<record>().swap(records);
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks.size() * chunk_size + large_bytes + records.capacity() * sizeof(record);
  }
  static chunk make_chunk(std::size_t size) {
    return std::make_unique_for_overwrite<char[]>(size);  // NOLINT(modernize-avoid-c-arrays)
  }

  std::vector<record> records;
  std::vector<chunk> large;
  std::size_t large_bytes = 0;
  std::vector<chunk> chunks;
  std::size_t used = 0;    // of the chunks
  std::size_t filled = 0;  // of the last one that is used
};

struct gathered_records::spare {
  void give_back(std::unique_ptr<memory> one) {
    one->clear();
    const std::lock_guard lock(mutex);
    if (!here) here = std::move(one);
  }
  std::unique_ptr<memory> take() {
    const std::lock_guard lock(mutex);
    return std::move(here);
  }
  std::size_t bytes() {
    const std::lock_guard lock(mutex);
    return here ? here->bytes() : 0;
  }

  std::mutex mutex;
  std::unique_ptr<memory> here;
};

gathered_records::gathered_records() : spare_(std::make_shared<spare>()) {}
gathered_records::~gathered_records() = default;

void gathered_records::add(const record_batch& batch) {
  if (!memory_) memory_ = spare_->take();
  if (!memory_) memory_ = std::make_unique<memory>();
  for (const record& one : batch) {
    memory_->keep(one);
    bytes_ += one.data().size();
  }
  records_ += batch.size();
  behind_ = batch.millis_behind_latest();
}

record_batch gathered_records::take() {
  const std::shared_ptr<memory> owner(memory_.release(), [spare = spare_](memory* one) {
    spare->give_back(std::unique_ptr<memory>(one));
  });
  records_ = 0;
  bytes_ = 0;
  return {owner->records, owner, behind_};
}

void gathered_records::release_memory() { spare_->take(); }

std::size_t gathered_records::memory_bytes() const {
  return (memory_ ? memory_->bytes() : 0) + spare_->bytes();
}

}  // namespace kclxx::processing
