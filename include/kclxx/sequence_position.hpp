// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/export.hpp>

namespace kclxx {

/// A place in a shard: the pair of sequence number and sub-sequence number.
///
/// The sub-sequence number tells the user records of one aggregated (KPL) record apart; it is 0
/// for every other record. A value type without heap memory, ordered as the KCL orders positions:
/// sequence numbers by their value as numbers, then by sub-sequence number. The sentinels sort
/// before every number (AT_TIMESTAMP < TRIM_HORIZON < LATEST), SHARD_END after.
///
/// Thread safety: distinct objects are independent; const access to a shared one is safe.
class KCLXX_EXPORT sequence_position {
 public:
  /// The longest sequence number that fits, in characters. Kinesis uses 56 digits.
  static constexpr std::size_t capacity = 128;

  /// Takes a decimal number or one of TRIM_HORIZON, LATEST, AT_TIMESTAMP and SHARD_END.
  ///
  /// Errors: std::invalid_argument when the text is neither, is empty, or is longer than
  /// `capacity`.
  explicit sequence_position(std::string_view sequence_number,
                             std::uint64_t sub_sequence_number = 0);

  /// As the constructor, but std::nullopt where that throws.
  [[nodiscard]] static std::optional<sequence_position> parse(
      std::string_view sequence_number, std::uint64_t sub_sequence_number = 0) noexcept;

  /// The sequence number just as it was given, leading zeros included.
  /// Lifetime: the view ends with this object.
  [[nodiscard]] std::string_view sequence_number() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] std::uint64_t sub_sequence_number() const noexcept { return sub_; }

  /// False for the sentinels, which name a place without a record.
  [[nodiscard]] bool is_number() const noexcept { return rank_ == 0; }

  friend KCLXX_EXPORT std::strong_ordering operator<=>(const sequence_position& a,
                                                       const sequence_position& b) noexcept;
  friend bool operator==(const sequence_position& a, const sequence_position& b) noexcept {
    return (a <=> b) == std::strong_ordering::equal;
  }

 private:
  sequence_position() = default;

  std::array<char, capacity> text_{};
  std::uint64_t sub_ = 0;
  std::uint8_t size_ = 0;
  std::int8_t rank_ = 0;  // 0 for numbers, below 0 and above 0 for the sentinels
};

/// `sequence/sub-sequence`, for logs and test output.
KCLXX_EXPORT std::string to_string(const sequence_position& position);
KCLXX_EXPORT std::ostream& operator<<(std::ostream& out, const sequence_position& position);

}  // namespace kclxx
