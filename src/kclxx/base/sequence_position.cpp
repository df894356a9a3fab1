// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <charconv>
#include <ostream>
#include <stdexcept>

#include <kclxx/sequence_position.hpp>

namespace kclxx {

namespace {

constexpr std::size_t digits_per_word = 19;
constexpr std::size_t most_digits = 4 * digits_per_word + 1;

bool is_digits(std::string_view text) noexcept {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_leading_zeros(std::string_view digits) noexcept {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

/// Takes the last 19 digits, or as many as there are.
std::uint64_t take_word(std::string_view& digits) noexcept {
  const std::size_t count = std::min(digits.size(), digits_per_word);
  std::uint64_t value = 0;
  for (const char c : digits.substr(digits.size() - count)) {
    value = 10 * value + static_cast<std::uint64_t>(c - '0');
  }
  digits.remove_suffix(count);
  return value;
}

void put_word(std::uint64_t value, char* to) noexcept {
  for (std::size_t i = digits_per_word; i-- > 0; value /= 10) {
    to[i] = static_cast<char>('0' + value % 10);
  }
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
  result.sub_ = sub_sequence_number;
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
    std::array<char, most_digits> digits{};
    digits[0] = static_cast<char>('0' + top_digit_);
    char* to = digits.data() + 1;
    for (const std::uint64_t word : number_.words) {
      put_word(word, to);
      to += digits_per_word;
    }
    const std::string_view all(digits.data(), digits.size());
    const std::string_view significant = without_leading_zeros(all);
    out.append(size_ - significant.size(), '0').append(significant);
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
  return a.sub_ <=> b.sub_;
}

std::size_t hash_value(const sequence_position& position) noexcept {
  // As FNV-1a, by word; the last multiplication spreads the sub-sequence number.
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3U; };
  add(static_cast<std::uint64_t>(position.kind_));
  if (position.kind_ == sequence_position::kind::long_number) {
    add(std::hash<std::string_view>()(position.significant_digits()));
  } else if (position.kind_ == sequence_position::kind::number) {
    add(position.top_digit_);
    for (const std::uint64_t word : position.number_.words) add(word ^ (word >> 32U));
  }
  add(position.sub_);
  return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

std::string to_string(const sequence_position& position) {
  std::string text = position.sequence_number();
  return text.append("/").append(std::to_string(position.sub_sequence_number()));
}

std::ostream& operator<<(std::ostream& out, const sequence_position& position) {
  return out << to_string(position);
}

}  // namespace kclxx
