// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// One Kinesis record, as a view into the batch that it came in.
///
/// Thread safety: immutable; may be read from any thread.
/// Lifetime: a view is valid as long as a copy of its `record_batch` exists. Keep a copy of the
/// batch (it is a handle) to keep its records.
class record {
 public:
  /// A date, in UTC.
  using time_point = std::chrono::system_clock::time_point;

  /// The fields of a record; tests and other sources of records fill them in.
  /// Lifetime: the views are not copied; what they point to must outlive the record.
  struct fields {
    std::optional<std::string_view> data{};           ///< the payload, already decoded from base64
    std::optional<std::string_view> partition_key{};  ///< UTF-8
    std::string_view sequence_number{};               ///< decimal digits
    std::uint64_t sub_sequence_number = 0;            ///< place in an aggregated record, else 0
    std::optional<std::chrono::milliseconds> approximate_arrival_timestamp{};  ///< since 1970, UTC
  };

  /// Nothing is checked, not even that the sequence number is a number: see position().
  explicit record(const fields& values) noexcept
      : data_(values.data ? non_null(*values.data) : std::string_view()),
        partition_key_(values.partition_key ? non_null(*values.partition_key) : std::string_view()),
        sequence_number_(values.sequence_number),
        sub_sequence_number_(values.sub_sequence_number),
        arrival_(values.approximate_arrival_timestamp.value_or(no_arrival)) {}
  /// The fields that it was made from.
  [[nodiscard]] fields as_fields() const noexcept {
    // Most places that copy a record name all fields like this, so that they do not compile when
    // there is a further one.
    const auto& [data, partition_key, sequence_number, sub_sequence_number, arrival] = *this;
    fields to{{}, {}, sequence_number, sub_sequence_number, {}};
    if (data.data() != nullptr) to.data = data;
    if (partition_key.data() != nullptr) to.partition_key = partition_key;
    if (arrival != no_arrival) to.approximate_arrival_timestamp = arrival;
    return to;
  }

  /// The payload, decoded from base64, as characters or as bytes; empty when the daemon sent null
  /// (see `has_data`). It need not be text.
  [[nodiscard]] std::string_view data() const noexcept { return data_; }
  /// The payload as bytes: as data().
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span(data_));
  }
  /// False when the daemon sent null in place of data. An empty payload is data.
  [[nodiscard]] bool has_data() const noexcept { return data_.data() != nullptr; }

  /// The partition key, in UTF-8; std::nullopt when the daemon sent null. What was not valid
  /// Unicode in the daemon's line is replaced by U+FFFD.
  [[nodiscard]] std::optional<std::string_view> partition_key() const noexcept {
    if (partition_key_.data() == nullptr) return std::nullopt;
    return partition_key_;
  }

  /// Decimal digits. User records of one aggregated (KPL) record share it, and differ in the
  /// sub-sequence number, which counts from 0 on. To compare records, use position().
  [[nodiscard]] std::string_view sequence_number() const noexcept { return sequence_number_; }
  /// The place in an aggregated record, from 0 on; 0 for any other record.
  [[nodiscard]] std::uint64_t sub_sequence_number() const noexcept { return sub_sequence_number_; }

  /// When the record reached the stream, by the clock of Kinesis; std::nullopt when not known.
  /// Units: to the millisecond.
  [[nodiscard]] std::optional<time_point> approximate_arrival_timestamp() const noexcept {
    if (arrival_ == no_arrival) return std::nullopt;
    return time_point(arrival_);
  }

  /// The record's place in its shard. A value: it outlives the batch.
  /// Errors: as the constructor of sequence_position. Records from the daemon have been checked, so
  /// only a record made from `fields` throws.
  [[nodiscard]] sequence_position position() const {
    return sequence_position(sequence_number_, sub_sequence_number_);
  }

 private:
  // In place of a std::optional, which would make each record larger.
  static constexpr std::chrono::milliseconds no_arrival = std::chrono::milliseconds::min();
  // A null pointer means "null on the wire", so an empty view needs a pointer to something.
  static constexpr std::string_view non_null(std::string_view text) noexcept {
    return text.data() == nullptr ? std::string_view("") : text;
  }

  std::string_view data_;
  std::string_view partition_key_;
  std::string_view sequence_number_;
  std::uint64_t sub_sequence_number_;
  std::chrono::milliseconds arrival_;
};

}  // namespace kclxx
