// SPDX-License-Identifier: Apache-2.0
#include "processing/completion_window.hpp"

#include <algorithm>
#include <utility>

#include "base/invariant.hpp"

namespace kclxx::processing {

void completion_window::admit(record_batch records, time_point now) {
  if (records.empty()) return;
  for (const record& one : records) {
    entries_.push_back({&one});
    bytes_ += one.data().size();
    incomplete_bytes_ += one.data().size();
  }
  incomplete_ += records.size();
  spans_.push_back({end_, std::move(records), now});
  end_ = spans_.back().end();
}

void completion_window::complete(ordinal number) {
  detail::require_invariant(number >= begin_ && number < end_ && !entry_of(number).is_complete,
                            "a record is completed twice, or before it was delivered");
  entries_[number - begin_].is_complete = true;
  --incomplete_;
  incomplete_bytes_ -= at(number).data().size();
  while (!entries_.empty() && entries_.front().is_complete) {
    entries_.pop_front();
    if (++begin_ == spans_.front().end()) pass_front();
  }
}

void completion_window::pass_front() {
  passed_ = watermark();
  for (const record& one : spans_.front().records) bytes_ -= one.data().size();
  passed_batches_.push_back(std::move(spans_.front().records));
  spans_.pop_front();
}

void completion_window::clear() {
  passed_ = watermark();
  begin_ = end_;
  incomplete_ = 0;
  incomplete_bytes_ = bytes_ = 0;
  entries_.clear();
  for (span& one : spans_) passed_batches_.push_back(std::move(one.records));
  spans_.clear();
}

const record_batch& completion_window::batch_of(ordinal number) const {
  const auto after = std::upper_bound(
      spans_.begin(), spans_.end(), number,
      [](ordinal value, const span& delivered) { return value < delivered.first; });
  return (after - 1)->records;
}

std::optional<sequence_position> completion_window::watermark() const {
  if (spans_.empty() || spans_.front().first == begin_) return passed_;
  const sequence_position last =
      spans_.front().records[begin_ - 1 - spans_.front().first].position();
  return passed_ && last < *passed_ ? passed_ : last;
}

}  // namespace kclxx::processing
