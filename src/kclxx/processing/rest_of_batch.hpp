// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

#include "processing/failure_handling.hpp"

namespace kclxx::processing {

/// The records of a batch that are not complete, in order, and which of them a handler gets next.
/// Places count from the first of them.
///
/// Thread safety: none.
class rest_of_batch {
 public:
  explicit rest_of_batch(record_batch batch) : all_(std::move(batch)), rest_(all_) {}

  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  [[nodiscard]] const record& at(std::size_t place) const noexcept { return rest_[place]; }
  /// What to try next: all; or those that are tried without the others; or, while a failing record
  /// is searched for, half of those that it is among.
  [[nodiscard]] record_batch next() const;
  /// One of the first `count` records fails.
  void narrow(std::size_t count) noexcept { suspects_ = count; }
  void complete(std::size_t count);
  /// Of the first `count` records only those at `places` are not complete. They are tried next,
  /// without the others.
  void keep(std::size_t count, const std::vector<std::size_t>& places);
  /// All records up to here are complete; std::nullopt when not even the first is.
  [[nodiscard]] std::optional<sequence_position> watermark() const;

  /// Of the first record.
  [[nodiscard]] const failed_attempts& attempts() const noexcept;
  [[nodiscard]] failed_attempts& attempts(std::size_t place);

 private:
  record_batch all_;
  record_batch rest_;
  std::size_t suspects_ = 0;
  std::size_t alone_ = 0;
  std::vector<failed_attempts> attempts_;  // of the first records
};

}  // namespace kclxx::processing
