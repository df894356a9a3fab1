// SPDX-License-Identifier: Apache-2.0
#include "processing/gathered_records.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace kclxx::processing {

/// Texts lie in chunks, which do not move when further ones are added. A large text has memory of
/// its own: so all chunks have the same size, and at most a 32nd part of each stays unused.
struct gathered_records::memory {
  using chunk = std::unique_ptr<char[]>;  // NOLINT(modernize-avoid-c-arrays)
  static constexpr std::size_t chunk_size = std::size_t{256} << 10;

  void keep(const record_batch& batch) {
    make_room_for(batch.size());
    char* free = free_place;
    std::uint64_t data_size = 0;
    std::uint64_t key_size = 0;
    for (const record& record : batch) {
      const std::string_view data = record.data();
      const std::string_view key = record.partition_key().value_or(std::string_view());
      const std::string_view number = record.sequence_number();
      const std::size_t size = data.size() + key.size() + number.size();
      const bool is_large = size > chunk_size / 32;
      if (!is_large && size > static_cast<std::size_t>(chunk_end - free)) free = next_chunk();
      char* const target = is_large ? large_chunk(size) : free;
      if (!is_large) free = target + size;
      const auto kept_data = copy(data, target);
      const auto kept_key = copy(key, target + data.size());
      record::fields fields;
      // These are all fields: with a further one this does not compile.
      auto& [field_data, field_key, field_number, sub_sequence_number, arrival] = fields;
      field_number = copy(number, target + data.size() + key.size());
      sub_sequence_number = record.sub_sequence_number();
      arrival = arrival_of(record);
      data_size += data.size();
      key_size += key.size();
      // A missing text stays missing. The usual record has a branch of its own, which saves a third
      // of the time.
      if (record.has_data() && key.data() != nullptr) {
        field_data = kept_data;
        field_key = kept_key;
        records.emplace_back(fields);
      } else {
        if (record.has_data()) field_data = kept_data;
        if (key.data() != nullptr) field_key = kept_key;
        records.emplace_back(fields);
      }
    }
    free_place = free;
    data_bytes += data_size;
    text_bytes += data_size + key_size;
  }
  void make_room_for(std::size_t count) {
    const std::size_t size = records.size() + count;
    if (size > records.capacity()) records.reserve(std::max(size, 2 * records.capacity()));
  }
  static std::string_view copy(std::string_view text, char* buffer) {
    if (!text.empty()) std::memcpy(buffer, text.data(), text.size());
    return {buffer, text.size()};
  }
  static std::optional<std::chrono::milliseconds> arrival_of(const kclxx::record& record) {
    const auto date = record.approximate_arrival_timestamp();
    if (!date) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(date->time_since_epoch());
  }
  char* next_chunk() {
    if (used_chunks == chunks.size()) chunks.push_back(make_chunk(chunk_size));
    free_place = chunks[used_chunks++].get();
    chunk_end = free_place + chunk_size;
    return free_place;
  }
  char* large_chunk(std::size_t size) { return large_chunks.emplace_back(make_chunk(size)).get(); }
  /// Keeps a part of the memory for the next records.
  void clear() noexcept {
    large_chunks.clear();
    used_chunks = 0;
    free_place = chunk_end = nullptr;
    data_bytes = text_bytes = 0;
    chunks.resize(std::min(chunks.size(), spare_size / chunk_size));
    records.clear();
    if (records.capacity() > spare_size / sizeof(record)) std::vector<record>().swap(records);
  }
  static chunk make_chunk(std::size_t size) {
    return std::make_unique_for_overwrite<char[]>(size);  // NOLINT(modernize-avoid-c-arrays)
  }

  std::vector<record> records;
  std::uint64_t data_bytes = 0;  // of these records
  std::uint64_t text_bytes = 0;  // of their data and keys
  std::vector<chunk> large_chunks;
  std::vector<chunk> chunks;
  std::size_t used_chunks = 0;
  char* free_place = nullptr;  // where the next text begins, in the last used chunk
  char* chunk_end = nullptr;   // of that chunk
};

/// The memory of a batch that was dropped, by whichever thread dropped it.
struct gathered_records::spare {
  void give_back(std::unique_ptr<memory> dropped) {
    dropped->clear();
    const std::lock_guard lock(mutex);
    if (!unused) unused = std::move(dropped);
  }
  std::unique_ptr<memory> take() {
    const std::lock_guard lock(mutex);
    return std::move(unused);
  }

  std::mutex mutex;                // guards what follows
  std::unique_ptr<memory> unused;  // null when nothing is kept
};

gathered_records::gathered_records() : spare_(std::make_shared<spare>()) {}
gathered_records::~gathered_records() = default;

void gathered_records::add(const record_batch& batch) {
  if (!memory_) memory_ = spare_->take();
  if (!memory_) memory_ = std::make_unique<memory>();
  memory_->keep(batch);
  millis_behind_latest_ = batch.millis_behind_latest();
}

record_batch gathered_records::take() {
  const std::shared_ptr<memory> owner(memory_.release(), [spare = spare_](memory* dropped) {
    spare->give_back(std::unique_ptr<memory>(dropped));
  });
  return {owner->records, owner, millis_behind_latest_};
}

std::size_t gathered_records::records() const noexcept {
  return memory_ ? memory_->records.size() : 0;
}
std::uint64_t gathered_records::data_bytes() const noexcept {
  return memory_ ? memory_->data_bytes : 0;
}
sequence_position gathered_records::last_position() const {
  return memory_->records.back().position();
}
std::uint64_t gathered_records::bytes() const noexcept {
  if (empty()) return 0;
  return memory::chunk_size + bytes_for(memory_->text_bytes, memory_->records.size());
}

void gathered_records::release_memory() { spare_->take(); }

}  // namespace kclxx::processing
