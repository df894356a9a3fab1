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
    const auto before = positions.empty() ? std::nullopt : std::optional(positions.back());
    positions.push_back(place(fields, one_above(highest)));
    require_possible(positions.back(), before, fields);
    highest = std::max(highest, std::optional(positions.back()));
  }
  highest_ = highest;  // all are fine
  std::vector<record> views;
  std::deque<std::string> numbers;
  batch result;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const sequence_position& position = positions[i];
    const auto& kept = records_.try_emplace(position, stored_of(records[i])).first->second;
    views.emplace_back(record::fields{kept.data, kept.partition_key,
                                      numbers.emplace_back(position.sequence_number()),
                                      position.sub_sequence_number(), kept.arrival});
    result.largest = position;
  }
  result.line = daemon_model::process_records_line(views, count(millis_behind_latest));
  return result;
}

delivered_records::stored delivered_records::stored_of(const record::fields& fields) {
  return {std::optional<std::string>(fields.data), std::optional<std::string>(fields.partition_key),
          fields.approximate_arrival_timestamp};
}

/// In a batch records come in order. It may begin with some that were delivered before (P69).
void delivered_records::require_possible(const sequence_position& position,
                                         const std::optional<sequence_position>& before,
                                         const record::fields& fields) const {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("deliver_records: " + to_string(position) + why);
  };
  if (before && position <= *before) {
    refuse(" is not after " + to_string(*before) + ": a shard's records come in order");
  }
  if (!highest_ || position > *highest_) return;
  const auto found = records_.find(position);
  if (found == records_.end()) {
    refuse(" is not after " + to_string(*highest_) +
           ", and was not delivered before: a shard's records come in order");
  }
  const stored given = stored_of(fields);
  if (given != stored{} && given != found->second) {
    refuse(" was delivered with other fields: give the number alone to repeat it");
  }
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
