// SPDX-License-Identifier: Apache-2.0
#include "processing/rest_of_batch.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace kclxx::processing {

record_batch rest_of_batch::next() const {
  if (suspects_ > 0) return rest_.slice(0, std::max<std::size_t>(suspects_ / 2, 1));
  return alone_ > 0 ? rest_.slice(0, alone_) : rest_;
}

void rest_of_batch::complete(std::size_t count) {
  const std::size_t tried = std::min(count, attempts_.size());
  attempts_.erase(attempts_.begin(), attempts_.begin() + static_cast<std::ptrdiff_t>(tried));
  suspects_ -= std::min(count, suspects_);
  alone_ -= std::min(count, alone_);
  rest_ = rest_.slice(count, rest_.size());
}

void rest_of_batch::keep(std::size_t count, const std::vector<std::size_t>& places) {
  struct chosen {
    std::vector<record> records;
    record_batch source;  // keeps alive what the records are views of
  };
  const auto chosen_ones = std::make_shared<chosen>();
  chosen_ones->source = all_;
  chosen_ones->records.reserve(places.size() + rest_.size() - count);
  std::vector<failed_attempts> attempts;
  for (const std::size_t place : places) {
    chosen_ones->records.push_back(rest_[place]);
    attempts.push_back(place < attempts_.size() ? std::move(attempts_[place]) : failed_attempts{});
  }
  chosen_ones->records.insert(chosen_ones->records.end(), rest_.begin() + count, rest_.end());
  for (std::size_t place = count; place < attempts_.size(); ++place) {
    attempts.push_back(std::move(attempts_[place]));
  }
  rest_ = record_batch(chosen_ones->records, chosen_ones, all_.millis_behind_latest());
  attempts_ = std::move(attempts);
  suspects_ = 0;
  alone_ = places.size();
}

std::optional<sequence_position> rest_of_batch::watermark() const {
  if (rest_.empty()) return all_.back().position();
  const sequence_position first = rest_.front().position();
  const auto incomplete = std::partition_point(
      all_.begin(), all_.end(), [&](const record& one) { return one.position() < first; });
  if (incomplete == all_.begin()) return std::nullopt;
  return std::prev(incomplete)->position();
}

const failed_attempts& rest_of_batch::attempts() const noexcept {
  static const failed_attempts none;
  return attempts_.empty() ? none : attempts_.front();
}

failed_attempts& rest_of_batch::attempts(std::size_t place) {
  if (attempts_.size() <= place) attempts_.resize(place + 1);
  return attempts_[place];
}

}  // namespace kclxx::processing
