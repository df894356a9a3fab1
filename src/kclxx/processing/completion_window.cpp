// SPDX-License-Identifier: Apache-2.0
#include "processing/completion_window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/invariant.hpp"

namespace kclxx::processing {

void completion_window::admit(record_batch records, time_point now) {
  if (records.empty()) return;
  if (size() + records.size() > capacity()) grow(size() + records.size());
  std::uint64_t bytes = 0;
  for (const record& one : records) bytes += one.data().size();
  const std::size_t count = records.size();
  spans_.push_back({end_, std::move(records), now});
  end_ += count;
  incomplete_ += count;
  bytes_ += bytes;
  incomplete_bytes_ += bytes;
}

void completion_window::grow(std::size_t records) {
  std::vector<std::uint64_t> larger(std::bit_ceil((records + 63) / 64));
  larger.swap(bits_);
  for (arrival which = watermark_; which != end_; ++which) {
    const std::uint64_t bit = std::uint64_t{1} << which % 64;
    if ((larger[which / 64 % larger.size()] & bit) != 0) word_of(which) |= bit;
  }
}

void completion_window::complete(arrival which) {
  std::uint64_t& word = word_of(which);
  const std::uint64_t bit = std::uint64_t{1} << which % 64;
  detail::require_invariant(which >= watermark_ && which < end_ && (word & bit) == 0,
                            "a record is completed twice, or before it was delivered");
  word |= bit;
  highest_end_ = std::max(highest_end_, which + 1);
  --incomplete_;
  incomplete_bytes_ -= at(which).data().size();
  if (which == watermark_) advance();
}

/// To the first bit that is not set, a word at a time; what is passed is free for new records.
void completion_window::advance() {
  while (watermark_ != end_) {
    std::uint64_t& word = word_of(watermark_);
    const unsigned offset = watermark_ % 64;
    const auto ones = static_cast<unsigned>(std::countr_one(word >> offset));
    if (ones == 0) break;
    const arrival stop = std::min(watermark_ + ones, end_);
    const auto bits = static_cast<unsigned>(stop - watermark_);
    word &= ~((bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) << offset);
    watermark_ = stop;
    pass_whole_spans();
  }
}

void completion_window::pass_whole_spans() {
  while (!spans_.empty() && spans_.front().end() <= watermark_) {
    passed_ = spans_.front().records.back().position();
    for (const record& one : spans_.front().records) bytes_ -= one.data().size();
    spans_.pop_front();
  }
}

void completion_window::clear() {
  passed_ = position();
  watermark_ = highest_end_ = end_;
  incomplete_ = 0;
  incomplete_bytes_ = bytes_ = 0;
  spans_.clear();
}

std::deque<completion_window::span>::const_iterator completion_window::span_of(
    arrival which) const {
  const auto after =
      std::upper_bound(spans_.begin(), spans_.end(), which,
                       [](arrival number, const span& one) { return number < one.first; });
  return after - 1;
}

const record& completion_window::at(arrival which) const {
  const auto found = span_of(which);
  return found->records[which - found->first];
}

const record_batch& completion_window::batch_of(arrival which) const {
  return span_of(which)->records;
}

std::optional<sequence_position> completion_window::position() const {
  if (spans_.empty() || spans_.front().first == watermark_) return passed_;
  return at(watermark_ - 1).position();
}

std::optional<sequence_position> completion_window::highest_complete() const {
  return highest_end_ <= watermark_ ? position() : at(highest_end_ - 1).position();
}

}  // namespace kclxx::processing
