// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
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
/// To store one, use to_string(); from_string() reads it again.
class KCLXX_EXPORT sequence_position {
 public:
  /// The longest sequence number accepted: Kinesis permits 129 characters and uses 56.
  /// Units: characters.
  static constexpr std::size_t capacity = 129;

  /// Takes a decimal number or one of TRIM_HORIZON, LATEST, AT_TIMESTAMP and SHARD_END. The text is
  /// copied.
  /// Errors: std::bad_alloc; std::invalid_argument when the text is neither, is empty, or is longer
  /// than `capacity`.
  explicit sequence_position(std::string_view sequence_number,
                             std::uint64_t sub_sequence_number = 0);

  /// As the constructor, but std::nullopt where that throws std::invalid_argument.
  [[nodiscard]] static std::optional<sequence_position> parse(
      std::string_view sequence_number, std::uint64_t sub_sequence_number = 0);

  /// Reads the form that `to_string` writes: `sequence/sub-sequence`, both required. std::nullopt
  /// when the text is anything else.
  [[nodiscard]] static std::optional<sequence_position> from_string(std::string_view text);

  // Copies of a long number share its text and its reference count.
  sequence_position(const sequence_position& other) noexcept
      : number_(other.number_),
        sub_sequence_number_(other.sub_sequence_number_),
        top_digit_(other.top_digit_),
        size_(other.size_),
        kind_(other.kind_) {
    if (kind_ == kind::long_number) share();
  }
  sequence_position& operator=(const sequence_position& other) noexcept {
    // The new text is shared before the old one is released: both may be the same.
    if (other.kind_ == kind::long_number) other.share();
    if (kind_ == kind::long_number) release();
    number_ = other.number_;
    sub_sequence_number_ = other.sub_sequence_number_;
    top_digit_ = other.top_digit_;
    size_ = other.size_;
    kind_ = other.kind_;
    return *this;
  }
  ~sequence_position() {
    if (kind_ == kind::long_number) release();
  }

  /// The sequence number exactly as it was given, leading zeros included; or the sentinel's name.
  [[nodiscard]] std::string sequence_number() const;
  /// Appends the sequence number to `out`, without making a temporary string.
  void append_sequence_number(std::string& out) const;
  [[nodiscard]] std::uint64_t sub_sequence_number() const noexcept { return sub_sequence_number_; }

  /// False for the sentinels, which name a place without a record.
  [[nodiscard]] bool is_number() const noexcept {
    return kind_ == kind::number || kind_ == kind::long_number;
  }

  friend KCLXX_EXPORT std::strong_ordering operator<=>(const sequence_position& a,
                                                       const sequence_position& b) noexcept;
  friend bool operator==(const sequence_position& a, const sequence_position& b) noexcept {
    return (a <=> b) == std::strong_ordering::equal;
  }
  /// For std::hash and boost::hash: equal positions have equal hashes.
  friend KCLXX_EXPORT std::size_t hash_value(const sequence_position& position) noexcept;

 private:
  // In the order in which they sort.
  enum class kind : std::uint8_t {
    at_timestamp,
    trim_horizon,
    latest,
    number,       // up to 77 digits
    long_number,  // more: greater than every shorter one
    shard_end,
  };
  struct long_text;

  sequence_position() noexcept = default;

  void set_number(std::string_view digits);
  void share() const noexcept;
  void release() noexcept;
  [[nodiscard]] std::string_view significant_digits() const noexcept;

  // 76 digits, 19 in each word, the highest first: compared word by word, and printed without
  // long division. Or the text of a long number, which its copies share.
  union {
    std::array<std::uint64_t, 4> words;
    long_text* text;
  } number_{};
  std::uint64_t sub_sequence_number_ = 0;
  std::uint8_t top_digit_ = 0;  // the 77th
  std::uint8_t size_ = 0;       // of the text, with its leading zeros
  kind kind_ = kind::number;
};

static_assert(sizeof(sequence_position) <= 48);

/// `sequence/sub-sequence`; `sequence_position::from_string` reads it.
KCLXX_EXPORT std::string to_string(const sequence_position& position);
/// Writes what to_string returns.
KCLXX_EXPORT std::ostream& operator<<(std::ostream& out, const sequence_position& position);

}  // namespace kclxx

template <>
struct std::hash<kclxx::sequence_position> {
  std::size_t operator()(const kclxx::sequence_position& position) const noexcept {
    return hash_value(position);
  }
};
