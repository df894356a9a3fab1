// SPDX-License-Identifier: Apache-2.0
#include "processing/record_queue.hpp"

#include <algorithm>

namespace kclxx::processing {

std::size_t record_queue::admit(const record_batch& batch, std::size_t offset, time_point now,
                                std::span<std::string> keys) {
  std::uint64_t bytes = window_.bytes();
  std::size_t count = 0;
  for (; offset + count < batch.size(); ++count) {
    const std::uint64_t record_bytes = batch[offset + count].data().size();
    if (!fits(record_bytes, window_.size() + count, bytes)) break;
    bytes += record_bytes;
  }
  const ordinal first = window_.end();
  window_.admit(batch.slice(offset, count), now);
  const auto make_link = [&](std::size_t place) {
    if (keys.empty()) return link{{batch[place].partition_key()}};
    auto own = std::make_unique<const std::string>(std::move(keys[place]));
    const std::string_view text = *own;
    return link{{text}, std::move(own)};
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (order_ == order::none || push(first + i, make_link(offset + i))) new_.push(first + i);
  }
  return count;
}

bool record_queue::wants_more(std::uint64_t next_bytes) const noexcept {
  if (!fits(next_bytes, window_.size(), window_.bytes())) return false;
  if (ready() == 0) return true;
  return most_records_ - window_.size() >= (most_records_ + 7) / 8 &&
         window_.bytes() <= most_bytes_ - most_bytes_ / 8;
}

bool record_queue::push(ordinal number, link added) {
  const auto [newest, is_first] = keys_.try_emplace(added.key, number);
  links_.push_back(std::move(added));
  if (!is_first) link_of(std::exchange(newest->second, number)).next_of_key = number;
  return is_first;
}

std::optional<ordinal> record_queue::pop(ordinal number) {
  const link& completed = link_of(number);
  std::optional<ordinal> next;
  if (completed.next_of_key == 0) {
    keys_.erase(completed.key);
  } else {
    next = completed.next_of_key;
    keys_.find(completed.key)->first.text = link_of(*next).key.text;
  }
  for (; first_link_ != window_.begin(); ++first_link_) links_.pop_front();
  return next;
}

std::optional<ordinal> record_queue::take(choice first) {
  std::optional<ordinal> taken;
  if (!due_.empty() && (first == choice::failed || new_.empty())) {
    taken = due_.front();
    due_.pop_front();
  } else if (!new_.empty()) {
    taken = new_.top();
    new_.pop();
  }
  return taken;
}

void record_queue::complete(ordinal number) {
  window_.complete(number);  // first: it throws when that is a fault
  if (order_ == order::none) return;
  if (const auto follower = pop(number)) new_.push(*follower);
}

void record_queue::retry_at(ordinal number, time_point due) { retries_.emplace(due, number); }

void record_queue::make_due_ready(time_point now) {
  while (!retries_.empty() && retries_.top().first <= now) {
    due_.push_back(retries_.top().second);
    retries_.pop();
  }
}

std::optional<record_queue::time_point> record_queue::next_due() const {
  if (retries_.empty()) return std::nullopt;
  return retries_.top().first;
}

void record_queue::clear() {
  window_.clear();
  new_ = {};
  due_.clear();
  retries_ = {};
  keys_.clear();
  links_.clear();
}

}  // namespace kclxx::processing
