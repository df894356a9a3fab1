// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>
#include <stdexcept>

#include <kclxx/sequence_position.hpp>

namespace kclxx {

namespace {

std::optional<std::int8_t> sentinel_rank(std::string_view text) noexcept {
  if (text == "AT_TIMESTAMP") return std::int8_t{-3};
  if (text == "TRIM_HORIZON") return std::int8_t{-2};
  if (text == "LATEST") return std::int8_t{-1};
  if (text == "SHARD_END") return std::int8_t{1};
  return std::nullopt;
}

bool is_digits(std::string_view text) noexcept {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_leading_zeros(std::string_view digits) noexcept {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

std::optional<sequence_position> sequence_position::parse(
    std::string_view sequence_number, std::uint64_t sub_sequence_number) noexcept {
  if (sequence_number.size() > capacity) return std::nullopt;
  const auto rank = sentinel_rank(sequence_number);
  if (!rank && !is_digits(sequence_number)) return std::nullopt;
  sequence_position result;
  std::copy(sequence_number.begin(), sequence_number.end(), result.text_.begin());
  result.size_ = static_cast<std::uint8_t>(sequence_number.size());
  result.sub_ = sub_sequence_number;
  result.rank_ = rank.value_or(std::int8_t{0});
  return result;
}

sequence_position::sequence_position(std::string_view sequence_number,
                                     std::uint64_t sub_sequence_number) {
  const auto parsed = parse(sequence_number, sub_sequence_number);
  if (!parsed) {
    throw std::invalid_argument(
        sequence_number.size() > capacity
            ? "a sequence number of " + std::to_string(sequence_number.size()) +
                  " characters: at most " + std::to_string(capacity) + " are supported"
            : "neither a decimal number nor a sentinel: '" + std::string(sequence_number) + "'");
  }
  *this = *parsed;
}

std::strong_ordering operator<=>(const sequence_position& a, const sequence_position& b) noexcept {
  if (const auto by_rank = a.rank_ <=> b.rank_; by_rank != 0) return by_rank;
  if (a.rank_ == 0) {
    const std::string_view x = without_leading_zeros(a.sequence_number());
    const std::string_view y = without_leading_zeros(b.sequence_number());
    if (const auto by_length = x.size() <=> y.size(); by_length != 0) return by_length;
    if (const auto by_digits = x <=> y; by_digits != 0) return by_digits;
  }
  return a.sub_ <=> b.sub_;
}

std::string to_string(const sequence_position& position) {
  return std::string(position.sequence_number()) + "/" +
         std::to_string(position.sub_sequence_number());
}

std::ostream& operator<<(std::ostream& out, const sequence_position& position) {
  return out << to_string(position);
}

}  // namespace kclxx
