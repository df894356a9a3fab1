// SPDX-License-Identifier: Apache-2.0
#include "tool/generate/generated_records.hpp"

#include <array>

namespace kclxx::tool {

namespace {

constexpr std::size_t text_size = std::size_t{1} << 20;
constexpr std::size_t counter_digits = 32;

void append_padded(std::string& out, std::uint64_t value, std::size_t digits) {
  const std::string text = std::to_string(value);
  out.append(digits - text.size(), '0').append(text);
}

std::string make_text(std::size_t size, random_numbers& random) {
  std::string text;
  text.reserve(size + 16);
  while (text.size() < size) {
    std::uint64_t letters = random.next();
    for (std::uint64_t n = 2 + letters % 8; n > 0; --n) {
      letters /= 26;
      text += static_cast<char>('a' + letters % 26);
    }
    text += ' ';
  }
  return text;
}

std::string make_key(std::size_t number) {
  constexpr std::array<std::string_view, 3> foreign{
      "cl\xC3\xA9", "\xD0\xBA\xD0\xBB\xD1\x8E\xD1\x87", "\xE9\x8D\xB5\xF0\x9F\x94\x91"};
  std::string key(number % 8 == 7 ? foreign[number / 8 % foreign.size()] : "key");
  return key + "-" + std::to_string(number);
}

}  // namespace

record_texts::record_texts(const record_shape& shape, random_numbers& random)
    : shape_(shape), text_(make_text(shape.largest + text_size, random)) {
  for (std::size_t i = 0; i < shape.keys; ++i) keys_.push_back(make_key(i));
}

std::string_view record_texts::data(std::uint64_t number, random_numbers& random) const {
  if (!shape_.payloads.empty()) return shape_.payloads[number % shape_.payloads.size()];
  const std::uint64_t size = random.between(shape_.smallest, shape_.largest);
  return std::string_view(text_).substr(random.below(text_size), size);
}

generated_records::generated_records(const generated_shard& shard, const record_texts& texts,
                                     random_numbers random)
    : shard_(shard), texts_(texts), random_(random), prefix_("49") {
  append_padded(prefix_, shard.born_in, 10);
  append_padded(prefix_, shard.number, 12);
}

std::span<const record> generated_records::next(std::uint64_t count,
                                                std::chrono::milliseconds arrival) {
  const record_shape& shape = texts_.shape();
  sequence_numbers_.resize((count + shape.aggregate - 1) / shape.aggregate);
  records_.clear();
  record::fields one;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t sub = i % shape.aggregate;
    std::string& sequence_number = sequence_numbers_[i / shape.aggregate];
    if (sub == 0) {
      next_sequence_number(sequence_number);
      one.sequence_number = sequence_number;
      one.approximate_arrival_timestamp =
          arrival + std::chrono::milliseconds(static_cast<std::int64_t>(i * 1000 / count));
    }
    one.sub_sequence_number = sub;
    one.data = texts_.data(records_so_far_++, random_);
    one.partition_key = texts_.key(random_.between(shard_.first_key, shard_.end_key - 1));
    records_.emplace_back(one);
  }
  return records_;
}

void generated_records::next_sequence_number(std::string& out) {
  counter_ += random_.between(1, 1000);
  out = prefix_;
  append_padded(out, counter_, counter_digits);
}

}  // namespace kclxx::tool
