// SPDX-License-Identifier: Apache-2.0
#include "testing/delivered_records.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "daemon_model/lines.hpp"

namespace kclxx::testing {

namespace {

std::optional<std::int64_t> count(const std::optional<std::chrono::milliseconds>& time) {
  if (!time) return std::nullopt;
  return time->count();
}

std::string one_above(const std::optional<sequence_position>& highest) {
  std::string digits = highest ? highest->sequence_number() : "0";
  const auto last = std::find_if(digits.rbegin(), digits.rend(), [](char c) { return c != '9'; });
  std::fill(digits.rbegin(), last, '0');
  if (last == digits.rend()) {
    digits.insert(digits.begin(), '1');
  } else {
    ++*last;
  }
  return digits;
}

/// The position of a record with these fields. Errors: std::invalid_argument.
sequence_position place(const record::fields& fields, const std::string& next_number) {
  if (fields.sequence_number.empty() && fields.sub_sequence_number != 0) {
    throw std::invalid_argument("deliver_records: sub_sequence_number " +
                                std::to_string(fields.sub_sequence_number) +
                                " needs a sequence_number: it tells the user records of one apart");
  }
  if (fields.sub_sequence_number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    throw std::invalid_argument("deliver_records: sub_sequence_number " +
                                std::to_string(fields.sub_sequence_number) +
                                " is more than a Java long holds");
  }
  const std::string_view number =
      fields.sequence_number.empty() ? std::string_view(next_number) : fields.sequence_number;
  const auto position = sequence_position::parse(number, fields.sub_sequence_number);
  if (!position || !position->is_number()) {
    throw std::invalid_argument("deliver_records: the sequence_number '" + std::string(number) +
                                "' is not a number of 1 to 129 digits");
  }
  return *position;
}

}  // namespace

void delivered_records::start_after(const sequence_position& position) {
  if (position.is_number()) highest_ = position;
}

delivered_records::batch delivered_records::add(std::span<const record::fields> records,
                                                std::optional<milliseconds> millis_behind_latest) {
  std::vector<sequence_position> positions;
  auto highest = highest_;
  for (const record::fields& fields : records) {
    positions.push_back(place(fields, one_above(highest)));
    if (highest && positions.back() <= *highest) {
      throw std::invalid_argument("deliver_records: " + to_string(positions.back()) +
                                  " is not after " + to_string(*highest) +
                                  ": a shard's records come in order");
    }
    highest = positions.back();
  }
  highest_ = highest;  // all are fine
  std::vector<record> views;
  std::deque<std::string> numbers;
  batch result;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const sequence_position& position = positions[i];
    const auto& [data, partition_key, given_number, sub_sequence_number, arrival] = records[i];
    views.emplace_back(record::fields{data, partition_key,
                                      numbers.emplace_back(position.sequence_number()),
                                      sub_sequence_number, arrival});
    result.largest = std::max(result.largest, std::optional(position));
    records_.insert_or_assign(position, stored{std::optional<std::string>(data),
                                               std::optional<std::string>(partition_key), arrival});
  }
  result.line = daemon_model::process_records_line(views, count(millis_behind_latest));
  return result;
}

delivered_records::batch delivered_records::add_payloads(
    std::span<const std::string> payloads, milliseconds arrival,
    std::optional<milliseconds> millis_behind_latest) {
  std::vector<record::fields> records;
  for (const std::string& data : payloads) {
    records.push_back(
        {.data = data, .partition_key = "key", .approximate_arrival_timestamp = arrival});
  }
  return add(records, millis_behind_latest);
}

delivered_records::batch delivered_records::add_aggregate(
    std::span<const std::string> payloads, milliseconds arrival,
    std::optional<milliseconds> millis_behind_latest) {
  const std::string number = one_above(highest_);
  std::vector<record::fields> records;
  for (const std::string& data : payloads) {
    records.push_back({.data = data,
                       .partition_key = "key",
                       .sequence_number = number,
                       .sub_sequence_number = records.size(),
                       .approximate_arrival_timestamp = arrival});
  }
  return add(records, millis_behind_latest);
}

std::vector<delivered_records::batch> delivered_records::after(
    const sequence_position& position) const {
  constexpr std::size_t daemons_most = 10'000;
  std::vector<batch> batches;
  std::vector<record> views;
  std::deque<std::string> numbers;
  const auto end_batch = [&] {
    if (views.empty()) return;
    batches.push_back({daemon_model::process_records_line(views, 0), views.back().position()});
    views.clear();
    numbers.clear();
  };
  for (auto it = records_.upper_bound(position); it != records_.end(); ++it) {
    const auto& [at, kept] = *it;
    const auto& [data, partition_key, arrival] = kept;
    views.emplace_back(record::fields{data, partition_key,
                                      numbers.emplace_back(at.sequence_number()),
                                      at.sub_sequence_number(), arrival});
    if (views.size() == daemons_most) end_batch();
  }
  end_batch();
  return batches;
}

}  // namespace kclxx::testing
