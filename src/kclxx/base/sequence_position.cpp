// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <ostream>
#include <stdexcept>

#include <kclxx/sequence_position.hpp>

#include "base/eight_characters.hpp"
#include "base/fnv.hpp"

namespace kclxx {

namespace {

constexpr std::size_t digits_per_word = 19;
constexpr std::size_t most_digits = 4 * digits_per_word + 1;

bool is_digits(std::string_view text) noexcept {
  if (text.empty()) return false;
  for (; text.size() >= sizeof(detail::word); text.remove_prefix(sizeof(detail::word))) {
    if (detail::non_digits(detail::load(text.data())) != 0) return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_leading_zeros(std::string_view digits) noexcept {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

/// Takes the last 19 digits, or as many as there are.
std::uint64_t take_word(std::string_view& digits) noexcept {
  const std::size_t count = std::min(digits.size(), digits_per_word);
  std::string_view word = digits.substr(digits.size() - count);
  std::uint64_t value = 0;
  for (; word.size() >= sizeof(detail::word); word.remove_prefix(sizeof(detail::word))) {
    value = 100'000'000 * value +
            detail::value_of_digits(detail::load(word.data()) - detail::each('0'));
  }
  for (const char c : word) value = 10 * value + static_cast<std::uint64_t>(c - '0');
  digits.remove_suffix(count);
  return value;
}

using pair = std::array<char, 2>;

/// 00 to 99: half the divisions.
constexpr std::array<pair, 100> make_pairs() {
  std::array<pair, 100> result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return result;
}
constexpr std::array<pair, 100> pairs = make_pairs();

void put_pair(std::uint32_t value, char* target) noexcept {
  std::memcpy(target, pairs[value].data(), 2);
}

void put_four(std::uint32_t value, char* target) noexcept {
  put_pair(value / 100, target);
  put_pair(value % 100, target + 2);
}

void put_eight(std::uint32_t value, char* target) noexcept {
  put_four(value / 10'000, target);
  put_four(value % 10'000, target + 4);
}

void put_word(std::uint64_t value, char* target) noexcept {
  constexpr std::uint64_t eight = 100'000'000;
  const std::uint64_t high = value / eight;                   // eleven digits
  const auto top = static_cast<std::uint32_t>(high / eight);  // three
  target[0] = pairs[top / 100][1];
  put_pair(top % 100, target + 1);
  put_eight(static_cast<std::uint32_t>(high % eight), target + 3);
  put_eight(static_cast<std::uint32_t>(value % eight), target + 11);
}

// In the order of `kind`; empty for the numbers.
constexpr std::array<std::string_view, 6> sentinels = {
    "AT_TIMESTAMP", "TRIM_HORIZON", "LATEST", "", "", "SHARD_END"};

}  // namespace

struct sequence_position::long_text {
  std::atomic<std::size_t> uses{1};
  std::string text;
};

void sequence_position::share() const noexcept {
  number_.text->uses.fetch_add(1, std::memory_order_relaxed);
}

void sequence_position::release() noexcept {
  if (number_.text->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) delete number_.text;
}

/// Of a long number.
std::string_view sequence_position::significant_digits() const noexcept {
  return without_leading_zeros(number_.text->text);
}

void sequence_position::set_number(std::string_view digits) {
  size_ = static_cast<std::uint8_t>(digits.size());
  std::string_view rest = without_leading_zeros(digits);
  if (rest.size() > most_digits) {
    number_.text = new long_text{{1}, std::string(digits)};
    kind_ = kind::long_number;
    return;
  }
  for (std::size_t i = number_.words.size(); i-- > 0;) number_.words[i] = take_word(rest);
  if (!rest.empty()) top_digit_ = static_cast<std::uint8_t>(rest.front() - '0');
}

std::optional<sequence_position> sequence_position::parse(std::string_view sequence_number,
                                                          std::uint64_t sub_sequence_number) {
  if (sequence_number.empty() || sequence_number.size() > capacity) return std::nullopt;
  sequence_position result;
  result.sub_sequence_number_ = sub_sequence_number;
  if (is_digits(sequence_number)) {
    result.set_number(sequence_number);
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
            : "neither a decimal number nor a sentinel: '" + std::string(sequence_number) + "'");
  }
  *this = *parsed;
}

void sequence_position::append_sequence_number(std::string& out) const {
  if (kind_ == kind::long_number) {
    out.append(number_.text->text);
  } else if (kind_ != kind::number) {
    out.append(sentinels[static_cast<std::size_t>(kind_)]);
  } else {
    // The last `size_` of 77 digits, from their end on; what is longer is zeros.
    const std::size_t size = std::min<std::size_t>(size_, most_digits);
    std::array<char, most_digits> digits;  // NOLINT(*-member-init): those that are read are written
    char* const end = digits.data() + digits.size();
    digits.front() = static_cast<char>('0' + top_digit_);
    char* begin = end;
    for (std::size_t i = number_.words.size(); i > 0 && begin > end - size; --i) {
      begin -= digits_per_word;
      put_word(number_.words[i - 1], begin);
    }
    if (size < size_) out.append(size_ - size, '0');
    out.append(end - size, size);
  }
}

std::string sequence_position::sequence_number() const {
  std::string text;
  text.reserve(size_);
  append_sequence_number(text);
  return text;
}

std::strong_ordering operator<=>(const sequence_position& a, const sequence_position& b) noexcept {
  using kind = sequence_position::kind;
  if (const auto by_kind = a.kind_ <=> b.kind_; by_kind != 0) return by_kind;
  if (a.kind_ == kind::number) {
    if (const auto by_digit = a.top_digit_ <=> b.top_digit_; by_digit != 0) return by_digit;
    if (const auto by_words = a.number_.words <=> b.number_.words; by_words != 0) return by_words;
  } else if (a.kind_ == kind::long_number) {
    const std::string_view x = a.significant_digits();
    const std::string_view y = b.significant_digits();
    if (const auto by_length = x.size() <=> y.size(); by_length != 0) return by_length;
    if (const auto by_digits = x <=> y; by_digits != 0) return by_digits;
  }
  return a.sub_sequence_number_ <=> b.sub_sequence_number_;
}

std::size_t hash_value(const sequence_position& position) noexcept {
  // As FNV-1a, by word; the last multiplication spreads the sub-sequence number.
  detail::fnv_hash hash;
  hash.add(static_cast<std::uint64_t>(position.kind_));
  if (position.kind_ == sequence_position::kind::long_number) {
    hash.add(std::hash<std::string_view>()(position.significant_digits()));
  } else if (position.kind_ == sequence_position::kind::number) {
    hash.add(std::uint64_t{position.top_digit_});
    for (const std::uint64_t word : position.number_.words) hash.add(word ^ (word >> 32U));
  }
  hash.add(std::uint64_t{position.sub_sequence_number_});
  return static_cast<std::size_t>(hash.value() ^ (hash.value() >> 32U));
}

std::string to_string(const sequence_position& position) {
  std::string text = position.sequence_number();
  return text.append("/").append(std::to_string(position.sub_sequence_number()));
}

std::ostream& operator<<(std::ostream& out, const sequence_position& position) {
  return out << to_string(position);
}

}  // namespace kclxx
