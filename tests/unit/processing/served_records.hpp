// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <kclxx/record.hpp>

#include "unit/runtime/served_shard.hpp"

namespace kclxx::test {

/// Records with the sequence numbers from `first` on, over so many partition keys.
inline std::string keyed_records(std::size_t count, std::uint64_t first, std::size_t keys) {
  std::string line = R"({"action":"processRecords","records":[)";
  for (std::uint64_t number = first; number < first + count; ++number) {
    if (number > first) line += ",";
    line += R"({"action":"record","data":"eA==","partitionKey":"key-)" +
            std::to_string(number * 7 % keys) + R"(","sequenceNumber":")" + std::to_string(number) +
            R"(","approximateArrivalTimestamp":1600000000000,"subSequenceNumber":0})";
  }
  return line + R"(],"millisBehindLatest":0})";
}

inline std::uint64_t number_of(const record& event) {
  return std::stoull(std::string(event.sequence_number()));
}

/// Which records were processed, seen from all threads.
class processed_records {
 public:
  void add(const record& event) {
    const std::lock_guard lock(mutex_);
    auto& of_key = of_key_[std::string(event.partition_key().value())];
    is_in_order_ = is_in_order_ && (of_key.empty() || of_key.back() < number_of(event));
    of_key.push_back(number_of(event));
    ++count_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  [[nodiscard]] bool is_in_order() const {
    const std::lock_guard lock(mutex_);
    return is_in_order_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::uint64_t>> of_key_;
  std::size_t count_ = 0;
  bool is_in_order_ = true;
};

/// Sends an action without fields, and answers up to its status. True when the shard's end was
/// checkpointed.
inline bool perform(served_shard& shard, const std::string& action) {
  shard.send(R"({"action":")" + action + "\"}");
  const auto positions = shard.answer_until_status(action);
  return !positions.empty() && positions.back() == 0;
}

inline void process(served_shard& shard, const std::string& batch) {
  shard.send(batch);
  shard.answer_until_status();
}

/// From the shard's beginning to its end, in batches of this size.
inline bool process_shard(served_shard& shard, std::size_t count, std::size_t batch,
                          std::size_t keys) {
  shard.initialize("shard-1");
  for (std::size_t first = 1; first <= count; first += batch) {
    process(shard, keyed_records(batch, first, keys));
  }
  return perform(shard, "shardEnded");
}

inline bool logged(const served_shard& shard, const std::string& text) {
  const auto entries = shard.log().entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry.text.find(text) != std::string::npos; });
}

}  // namespace kclxx::test
