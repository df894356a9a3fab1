// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <algorithm>
#include <span>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// A value, and the record that it is in.
template <class Value>
struct json_record {
  /// The value in the record's data.
  Value value;
  /// The record that has the value.
  kclxx::record record;
};

/// The values in the records of a batch, in the shard's order, without those that did not parse.
/// Lifetime: that of the call that it is passed to.
template <class Value>
class json_batch : public std::span<const json_record<Value>> {
 public:
  // NOLINTNEXTLINE(modernize-use-equals-default): the constructors of a span
  using std::span<const json_record<Value>>::span;

  /// The values of the records after `position`, as record_batch::after.
  [[nodiscard]] json_batch after(const sequence_position& position) const {
    return {std::partition_point(
                this->begin(), this->end(),
                [&](const auto& entry) { return entry.record.position() <= position; }),
            this->end()};
  }
};

}  // namespace kclxx
