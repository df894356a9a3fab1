// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/record_batch.hpp>

namespace kclxx::test {

/// A batch that owns its records: a key and data for each, and sequence numbers from `first` on.
/// The weak pointer of take() tells whether somebody still has it.
class owned_batch {
 public:
  using keys_and_data = std::vector<std::pair<std::string, std::string>>;

  owned_batch(keys_and_data records, std::uint64_t first)
      : memory_(std::make_shared<memory>(std::move(records), first)) {}

  [[nodiscard]] record_batch get() const { return {memory_->records, memory_}; }
  /// Only the window and its like keep it from now on.
  [[nodiscard]] std::pair<record_batch, std::weak_ptr<const void>> take() {
    std::pair<record_batch, std::weak_ptr<const void>> result{get(), memory_};
    memory_.reset();
    return result;
  }

 private:
  struct memory {
    memory(keys_and_data from, std::uint64_t first) : texts(std::move(from)) {
      numbers.reserve(texts.size());
      for (const auto& [key, data] : texts) {
        numbers.push_back(std::to_string(first++));
        records.emplace_back(
            record::fields{.data = data, .partition_key = key, .sequence_number = numbers.back()});
      }
    }
    keys_and_data texts;
    std::vector<std::string> numbers;
    std::vector<record> records;
  };

  std::shared_ptr<memory> memory_;
};

}  // namespace kclxx::test
