// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/detail/export.hpp>

namespace kclxx {

/// A place in a shard: the pair of sequence number and sub-sequence number.
///
/// The sub-sequence number distinguishes the user records of one aggregated (KPL) record; it is 0
/// for every other record. Positions are ordered as the KCL orders them: sequence numbers by their
/// value as numbers, then by sub-sequence number. AT_TIMESTAMP, TRIM_HORIZON and LATEST, in this
/// order, sort before every number, and SHARD_END sorts after every number. Leading zeros do not
/// count: "007" equals "7".
///
/// To store a position, use to_string(); from_string() reads it again.
class KCLXX_EXPORT sequence_position {
 public:
  /// The longest sequence number accepted: Kinesis permits 129 characters and uses 56.
  /// Units: characters.
  static constexpr std::size_t capacity = 129;

  /// Takes a decimal number or one of TRIM_HORIZON, LATEST, AT_TIMESTAMP and SHARD_END. The text is
  /// copied.
  /// Errors: std::invalid_argument when the text is neither, is empty, or is longer
  /// than `capacity`.
  explicit sequence_position(std::string_view sequence_number,
                             std::uint64_t sub_sequence_number = 0);

  /// As the constructor, but std::nullopt where that throws std::invalid_argument.
  [[nodiscard]] static std::optional<sequence_position> parse(
      std::string_view sequence_number, std::uint64_t sub_sequence_number = 0);

  /// Reads the form that `to_string` writes: `sequence/sub-sequence`, both required. std::nullopt
  /// when the text is anything else.
  [[nodiscard]] static std::optional<sequence_position> from_string(std::string_view text);

  /// The sequence number exactly as it was given, leading zeros included; or the sentinel's name.
  [[nodiscard]] std::string sequence_number() const { return std::string(text()); }
  /// Appends the sequence number to `out`, without making a temporary string.
  void append_sequence_number(std::string& out) const { out.append(text()); }
  /// The place in an aggregated record, from 0 on; 0 for any other record.
  [[nodiscard]] std::uint64_t sub_sequence_number() const noexcept { return sub_sequence_number_; }

  /// False for the sentinels, which name a place without a record.
  [[nodiscard]] bool is_number() const noexcept { return kind_ == kind::number; }

  /// The order in the shard. TRIM_HORIZON is before all numbers, SHARD_END after them.
  friend KCLXX_EXPORT std::strong_ordering operator<=>(const sequence_position& a,
                                                       const sequence_position& b) noexcept;
  /// Whether both are the same place, however their numbers are written.
  friend bool operator==(const sequence_position& a, const sequence_position& b) noexcept {
    return (a <=> b) == std::strong_ordering::equal;
  }

 private:
  // In the order in which they sort.
  enum class kind : std::uint8_t { at_timestamp, trim_horizon, latest, number, shard_end };

  sequence_position() noexcept = default;

  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] std::string_view significant_digits() const noexcept {
    return text().substr(leading_zeros_);
  }

  std::uint64_t sub_sequence_number_ = 0;
  kind kind_ = kind::number;
  std::uint8_t size_ = 0;           // of the text
  std::uint8_t leading_zeros_ = 0;  // of a number
  std::array<char, capacity> text_{};
};

/// `sequence/sub-sequence`; `sequence_position::from_string` reads it.
KCLXX_EXPORT std::string to_string(const sequence_position& position);
/// Writes what to_string returns.
KCLXX_EXPORT std::ostream& operator<<(std::ostream& out, const sequence_position& position);

}  // namespace kclxx
