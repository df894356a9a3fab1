// SPDX-License-Identifier: Apache-2.0
#include "processing/record_queue.hpp"

#include <algorithm>
#include <bit>

namespace kclxx::processing {

std::size_t record_queue::admit(const record_batch& batch, std::size_t offset, time_point now) {
  std::uint64_t bytes = window_.bytes();
  std::size_t count = 0;
  for (; offset + count < batch.size(); ++count) {
    const std::uint64_t next = batch[offset + count].data().size();
    if (!fits(next, window_.size() + count, bytes)) break;
    bytes += next;
  }
  const arrival first = window_.end();
  window_.admit(batch.slice(offset, count), now);
  if (window_.size() > ready_bits_.size() * 64) grow();
  for (arrival which = first; which != window_.end(); ++which) {
    if (order_ == order::none || chains_.push(which)) set_ready(which);
  }
  return count;
}

bool record_queue::wants_more(std::uint64_t next) const noexcept {
  if (!fits(next, window_.size(), window_.bytes())) return false;
  if (ready_ == 0) return true;
  return most_records_ - window_.size() >= (most_records_ + 7) / 8 &&
         window_.bytes() <= most_bytes_ - most_bytes_ / 8;
}

void record_queue::set_ready(arrival which) {
  ready_bits_[which / 64 % ready_bits_.size()] |= std::uint64_t{1} << which % 64;
  first_ready_ = ready_++ == 0 ? which : std::min(first_ready_, which);
}

std::optional<arrival> record_queue::take() {
  if (ready_ == 0) return std::nullopt;
  // Before the watermark the ring has the bits of newer records.
  first_ready_ = std::max(first_ready_, window_.watermark());
  for (;;) {
    std::uint64_t& word = ready_bits_[first_ready_ / 64 % ready_bits_.size()];
    const unsigned offset = first_ready_ % 64;
    if (const std::uint64_t rest = word >> offset; rest != 0) {
      first_ready_ += static_cast<unsigned>(std::countr_zero(rest));
      word &= ~(std::uint64_t{1} << first_ready_ % 64);
      --ready_;
      return first_ready_++;
    }
    first_ready_ += 64 - offset;
  }
}

void record_queue::complete(arrival which) {
  window_.complete(which);  // first: it throws when that is a fault
  if (order_ == order::key) {
    if (const auto next = chains_.pop(which)) set_ready(*next);
  }
}

void record_queue::retry_at(arrival which, time_point due) { retries_.emplace(due, which); }

void record_queue::make_due_ready(time_point now) {
  while (!retries_.empty() && retries_.top().first <= now) {
    set_ready(retries_.top().second);
    retries_.pop();
  }
}

std::optional<record_queue::time_point> record_queue::next_due() const {
  if (retries_.empty()) return std::nullopt;
  return retries_.top().first;
}

void record_queue::grow() {
  std::vector<std::uint64_t> larger(std::bit_ceil((window_.size() + 63) / 64));
  larger.swap(ready_bits_);
  const arrival begin = window_.watermark();
  for (arrival which = begin; which != begin + larger.size() * 64; ++which) {
    const std::uint64_t bit = std::uint64_t{1} << which % 64;
    if ((larger[which / 64 % larger.size()] & bit) == 0) continue;
    ready_bits_[which / 64 % ready_bits_.size()] |= bit;
  }
}

void record_queue::clear() {
  window_.clear();
  ready_ = 0;
  retries_ = {};
}

}  // namespace kclxx::processing
