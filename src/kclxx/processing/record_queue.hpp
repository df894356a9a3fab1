// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>

#include "processing/completion_window.hpp"

namespace kclxx::processing {

/// What is to be processed next, and what is complete: the window, its limits, the order of each
/// key, and the failed records that are tried again later. A record is ready, taken, waiting for a
/// retry, waiting for its key, or complete.
///
/// Pure. Thread safety: none.
class record_queue {
 public:
  using time_point = completion_window::time_point;

  record_queue(order ordering, std::size_t most_records, std::uint64_t most_bytes)
      : order_(ordering), most_records_(most_records), most_bytes_(most_bytes) {}
  record_queue(const record_queue&) = delete;
  record_queue& operator=(const record_queue&) = delete;

  /// Takes records of the batch in, from `offset` on, until the window is full. A record that is
  /// larger than the window is taken in when the window is empty. Returns how many. `keys` are
  /// those of all records of the batch, and are moved from; empty: the partition keys. Records
  /// without a key are one key.
  std::size_t admit(const record_batch& batch, std::size_t offset, time_point now,
                    std::span<std::string> keys = {});
  /// Whether a record of so many bytes fits, and at least an eighth of the window is free or
  /// nothing is ready: then it is worth while to admit more.
  [[nodiscard]] bool wants_more(std::uint64_t next_bytes) const noexcept;

  [[nodiscard]] std::size_t ready() const noexcept { return new_.size() + due_.size(); }
  enum class choice { oldest, failed };
  /// A record that is ready: the oldest new one; a failed one that is due when there is none, or
  /// when those come first. It is taken until one of the next two is called for it.
  [[nodiscard]] std::optional<ordinal> take(choice first = choice::oldest);
  void complete(ordinal number);
  void retry_at(ordinal number, time_point due);

  /// Makes the failed records ready that are due.
  void make_due_ready(time_point now);
  /// When the next of them is due.
  [[nodiscard]] std::optional<time_point> next_due() const;

  /// Drops what is not complete. Nothing may be admitted afterwards.
  void clear();
  [[nodiscard]] const completion_window& window() const noexcept { return window_; }
  /// See completion_window.
  [[nodiscard]] std::vector<record_batch> take_passed() { return window_.take_passed(); }

 private:
  /// Beside so many records and bytes. The first one always does.
  [[nodiscard]] bool fits(std::uint64_t next_bytes, std::size_t records,
                          std::uint64_t bytes) const noexcept {
    return records == 0 || (records < most_records_ && bytes + next_bytes <= most_bytes_);
  }

  using retry = std::pair<time_point, ordinal>;
  template <class Value>
  using smallest_first = std::priority_queue<Value, std::vector<Value>, std::greater<>>;
  using key_type = std::optional<std::string_view>;
  struct hashed_key {
    mutable key_type text;  // the same text elsewhere is the same key
    std::size_t hash = std::hash<key_type>()(text);
    bool operator==(const hashed_key& other) const noexcept {
      return hash == other.hash && text == other.text;
    }
  };
  struct hash_of {
    std::size_t operator()(const hashed_key& key) const noexcept { return key.hash; }
  };
  struct link {
    hashed_key key;                            // in the record's memory, or:
    std::unique_ptr<const std::string> own{};  // a key that is no partition key
    ordinal next_of_key = 0;                   // 0 for none
  };

  [[nodiscard]] link& link_of(ordinal number) { return links_[number - first_link_]; }
  /// True when it is the first of its key, which may be processed.
  bool push(ordinal number, link added);
  /// The next record of its key, if there is one.
  std::optional<ordinal> pop(ordinal number);

  order order_;
  std::size_t most_records_;
  std::uint64_t most_bytes_;
  completion_window window_;
  smallest_first<ordinal> new_;  // ready, and not tried before
  std::deque<ordinal> due_;      // ready, and failed before
  smallest_first<retry> retries_;
  // Of order::key: the newest of each key's incomplete records, and the records in the order of
  // delivery. A key's text belongs to the oldest of these records.
  std::unordered_map<hashed_key, ordinal, hash_of> keys_;
  std::deque<link> links_;
  ordinal first_link_ = 0;
};

}  // namespace kclxx::processing
