// SPDX-License-Identifier: Apache-2.0
#include "processing/gathered_records.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace kclxx::processing {

/// Texts lie in chunks, which do not move when more is added.
struct gathered_records::memory {
  static constexpr std::size_t chunk_size = std::size_t{256} << 10;

  std::string_view keep(std::string_view text) {
    if (next == nullptr || text.size() > static_cast<std::size_t>(end - next)) {
      begin_chunk(text.size());
    }
    char* const place = next;
    std::memcpy(place, text.data(), text.size());
    next += text.size();
    return {place, text.size()};
  }
  /// A missing text is not an empty one.
  std::optional<std::string_view> keep(const std::optional<std::string_view>& text) {
    return text ? std::optional(keep(*text)) : std::nullopt;
  }
  void keep(const record& one) {
    records.emplace_back(record::fields{
        one.has_data() ? std::optional(keep(one.data())) : std::nullopt, keep(one.partition_key()),
        keep(one.sequence_number()), one.sub_sequence_number(), arrival_of(one)});
  }
  void begin_chunk(std::size_t size) {
    // A chunk that is too small for this text is left out until the memory is used again.
    while (used < chunks.size() && chunks[used].size < size) ++used;
    if (used == chunks.size()) {
      const std::size_t capacity = std::max(size, chunk_size);
      chunks.push_back(
          {std::make_unique_for_overwrite<char[]>(capacity),  // NOLINT(modernize-avoid-c-arrays)
           capacity});
    }
    next = chunks[used].text.get();
    end = next + chunks[used].size;
    ++used;
  }
  void clear() noexcept {
    records.clear();
    used = 0;
    next = end = nullptr;
  }
  static std::optional<std::chrono::milliseconds> arrival_of(const record& one) {
    const auto arrival = one.approximate_arrival_timestamp();
    if (!arrival) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(arrival->time_since_epoch());
  }

  struct chunk {
    std::unique_ptr<char[]> text;  // NOLINT(modernize-avoid-c-arrays)
    std::size_t size;
  };

  std::vector<record> records;
  std::vector<chunk> chunks;
  std::size_t used = 0;  // of the chunks
  char* next = nullptr;
  char* end = nullptr;
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

}  // namespace kclxx::processing
