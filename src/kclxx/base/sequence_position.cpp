// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <ostream>
#include <stdexcept>

#include <kclxx/sequence_position.hpp>

#include "base/printable.hpp"

namespace kclxx {

namespace {

bool is_digits(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// In the order of `kind`; empty for the numbers.
constexpr std::array<std::string_view, 5> sentinels = {"AT_TIMESTAMP", "TRIM_HORIZON", "LATEST", "",
                                                       "SHARD_END"};

}  // namespace

std::optional<sequence_position> sequence_position::parse(std::string_view sequence_number,
                                                          std::uint64_t sub_sequence_number) {
  if (sequence_number.empty() || sequence_number.size() > capacity) return std::nullopt;
  sequence_position result;
  result.sub_sequence_number_ = sub_sequence_number;
  result.size_ = static_cast<std::uint8_t>(sequence_number.copy(result.text_.data(), capacity));
  if (is_digits(sequence_number)) {
    const std::size_t zeros =
        std::min(sequence_number.find_first_not_of('0'), sequence_number.size());
    result.leading_zeros_ = static_cast<std::uint8_t>(zeros);
    return result;
  }
  const auto sentinel = std::find(sentinels.begin(), sentinels.end(), sequence_number);
  if (sentinel == sentinels.end()) return std::nullopt;
  result.kind_ = static_cast<kind>(sentinel - sentinels.begin());
  return result;
}

std::optional<sequence_position> sequence_position::from_string(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const char* end = text.data() + text.size();
  std::uint64_t sub = 0;
  const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, sub);
  if (error != std::errc() || stop != end) return std::nullopt;
  return parse(text.substr(0, slash), sub);
}

sequence_position::sequence_position(std::string_view sequence_number,
                                     std::uint64_t sub_sequence_number) {
  const auto parsed = parse(sequence_number, sub_sequence_number);
  if (!parsed) {
    throw std::invalid_argument(
        sequence_number.size() > capacity
            ? "a sequence number of " + std::to_string(sequence_number.size()) +
                  " characters: at most " + std::to_string(capacity) + " are supported"
            : "neither a decimal number nor a sentinel: " + detail::quoted(sequence_number));
  }
  *this = *parsed;
}

std::strong_ordering operator<=>(const sequence_position& a, const sequence_position& b) noexcept {
  if (const auto by_kind = a.kind_ <=> b.kind_; by_kind != 0) return by_kind;
  if (a.is_number()) {
    const std::string_view x = a.significant_digits();
    const std::string_view y = b.significant_digits();
    if (const auto by_length = x.size() <=> y.size(); by_length != 0) return by_length;
    if (const auto by_digits = x <=> y; by_digits != 0) return by_digits;
  }
  return a.sub_sequence_number_ <=> b.sub_sequence_number_;
}

std::string to_string(const sequence_position& position) {
  std::string text = position.sequence_number();
  return text.append("/").append(std::to_string(position.sub_sequence_number()));
}

std::ostream& operator<<(std::ostream& out, const sequence_position& position) {
  return out << to_string(position);
}

}  // namespace kclxx
