// SPDX-License-Identifier: Apache-2.0
#include "simulation/processing/stream.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kclxx::simulation {

stream::stream(random_source& random, std::size_t records, bool keeps_order, bool is_crowded)
    : keeps_order_(keeps_order) {
  const std::uint64_t keys = is_crowded ? 12 : 1 + random.below(12);
  std::uint64_t sequence = 1;
  std::uint64_t sub = 0;
  for (std::size_t i = 0; i < records; ++i) {
    const bool is_same_record = i > 0 && random.chance(30);  // an aggregated one
    sub = is_same_record ? sub + 1 : 0;
    sequence += is_same_record ? 0 : 1 + random.below(3);
    const std::uint64_t key = random.below(keys);
    planned_record one{std::to_string(sequence),    sub, "key-" + std::to_string(key),
                       std::to_string(i),           0,   false,
                       std::chrono::milliseconds(0)};
    if (is_crowded ? key % 2 == 0 : random.chance(25)) {
      one.is_good = false;
      one.failures = is_crowded || random.chance(30) ? -1 : static_cast<int>(1 + random.below(6));
      one.is_permanent = !is_crowded && random.chance(20);
    }
    if (random.chance(is_crowded ? 80 : 40)) {
      one.time = std::chrono::milliseconds(random.below(3000));
    }
    records_.push_back(std::move(one));
  }
}

std::vector<record::fields> stream::take(std::size_t count) {
  std::vector<record::fields> batch;
  for (; batch.size() < count && !is_all_delivered(); ++delivered_) {
    batch.push_back(records_[delivered_].fields());
  }
  return batch;
}

std::size_t stream::held(const sequence_position& persisted) const {
  const auto end = records_.begin() + static_cast<std::ptrdiff_t>(delivered_);
  const auto oldest = std::find_if(records_.begin(), end, [&](const planned_record& one) {
    return one.how == planned_record::end::none &&
           (!persisted.is_number() || one.position() > persisted);
  });
  return static_cast<std::size_t>(end - oldest);
}

void stream::begin(const record& one, bool is_first) {
  planned_record& what = of(one);
  if (what.how != planned_record::end::none) {
    throw violation("twice: record " + what.data + " was complete and comes again");
  }
  if (what.is_in_progress) throw violation("twice: record " + what.data + " is in progress");
  what.is_in_progress = true;
  ++what.attempts;
  if (keeps_order_ && is_first) require_order(number_of(one));
}

void stream::require_order(std::size_t number) const {
  for (std::size_t earlier = 0; earlier < number; ++earlier) {
    const planned_record& other = records_[earlier];
    if (other.key == records_[number].key && !other.was_ended) {
      throw violation("order: record " + records_[number].data + " comes before " + other.data +
                      " of its key is complete");
    }
  }
}

void stream::require_new_work(const record& one, std::size_t lanes, bool is_circuit_open) {
  const bool is_retry = of(one).attempts > 1;
  const bool was_retry = std::exchange(was_retry_, is_retry);
  const planned_record* const waits = is_retry ? ready_for_first_attempt() : nullptr;
  if (waits == nullptr) return;
  const auto retries = std::count_if(records_.begin(), records_.end(), [](const auto& other) {
    return other.is_in_progress && other.attempts > 1;
  });
  if (is_circuit_open || was_retry ||
      static_cast<std::size_t>(retries) > std::max<std::size_t>(1, lanes / 2)) {
    throw violation("starvation: record " + of(one).data + " is tried again, and " + waits->data +
                    " waits for its first attempt");
  }
}

void stream::require_failed(std::int64_t records) const {
  const auto failed = std::count_if(records_.begin(), records_.end(),
                                    [](const auto& one) { return one.has_failed; });
  if (failed < records) {
    throw violation("circuit: it opens after failures of " + std::to_string(failed) + " records");
  }
}

void stream::require_lane(std::size_t lanes) const {
  const auto running = std::count_if(records_.begin(), records_.end(),
                                     [](const auto& one) { return one.is_in_progress; });
  if (static_cast<std::size_t>(running) > lanes) {
    throw violation("lanes: handlers have " + std::to_string(running) + " records");
  }
}

const planned_record* stream::ready_for_first_attempt() const {
  const auto found = std::find_if(records_.begin(), records_.end(), [&](const auto& one) {
    if (!one.arrived || one.attempts > 0) return false;
    return !keeps_order_ || std::none_of(records_.data(), &one, [&](const auto& earlier) {
      return earlier.key == one.key && earlier.arrived && earlier.how == planned_record::end::none;
    });
  });
  return found == records_.end() ? nullptr : &*found;
}

void stream::require_handed_over(std::chrono::steady_clock::time_point now,
                                 std::chrono::milliseconds linger) const {
  for (const planned_record& one : records_) {
    if (one.arrived && one.attempts == 0 && now - *one.arrived >= linger) {
      throw violation("linger: record " + one.data + " still waits after " +
                      std::to_string(linger.count()) + " ms");
    }
  }
}

void stream::leave(const record& one) {
  of(one).is_in_progress = false;
  of(one).was_left = true;
}

void stream::fail(const record& one, int most_attempts) {
  planned_record& what = of(one);
  what.is_in_progress = false;
  ++what.failed;
  const int most = what.is_permanent ? 1 : most_attempts;
  if (most > 0 && what.failed > most + what.failed_parkings + failed_preparations_) {
    throw violation("attempts: record " + what.data + " had " + std::to_string(what.failed));
  }
}

void stream::end(const record& one, planned_record::end ending) {
  planned_record& what = of(one);
  what.is_in_progress = false;
  if (what.how != planned_record::end::none && what.how != ending) {
    throw violation("both: record " + what.data + " is complete in two ways");
  }
  if (what.how == planned_record::end::parked) {
    throw violation("twice: record " + what.data + " is parked twice");
  }
  if (what.is_good && ending != planned_record::end::succeeded && --may_be_given_up_ < 0) {
    throw violation("outage: record " + what.data + " is given up, and it fails only when all do");
  }
  what.how = ending;
  what.was_ended = true;
}

planned_record& stream::at(const std::string& position) {
  const auto found = std::find_if(records_.begin(), records_.end(), [&](const auto& one) {
    return to_string(one.position()) == position;
  });
  if (found == records_.end()) throw violation("log: there is no record " + position);
  return *found;
}

void stream::read_log(const std::string& text) {
  constexpr std::string_view record_of = "record ";
  if (!text.starts_with(record_of) && !text.starts_with("attempt ")) return;
  const auto begin = text.find(record_of) + record_of.size();
  planned_record& what = at(text.substr(begin, text.find(' ', begin) - begin));
  if (what.was_left) {
    throw violation("stop: record " + what.data +
                    " was left after the stop token, and then: " + text);
  }
  if (text.find(" skipped after ") != std::string::npos) {
    end(record(what.fields()), planned_record::end::skipped);
  } else if (text.find(" parked after ") != std::string::npos) {
    what.is_parked_in_log = true;
  }
}

void stream::read_attempt(const sequence_position& position, int attempt) {
  const planned_record& what = at(to_string(position));
  const bool may_be_earlier = what.is_repeated;  // an attempt before the repetition
  if (what.was_left && attempt >= what.attempts && !may_be_earlier) {
    throw violation("stop: record " + what.data +
                    " was left after the stop token, and the attempt is reported");
  }
}

void stream::begin_anew(planned_record& one) {
  if (one.how == planned_record::end::parked && !one.is_parked_in_log) {
    throw violation("silent: no line states that record " + one.data + " was parked");
  }
  one.how = planned_record::end::none;
  one.attempts = one.failed = one.failed_parkings = 0;
  one.arrived.reset();
  one.is_in_progress = one.was_left = one.is_parked_in_log = one.is_repeated = false;
  one.has_failed = false;
}

void stream::repeat(const record& one, std::chrono::steady_clock::time_point now) {
  begin_anew(of(one));
  of(one).arrived = now;
  of(one).is_repeated = true;
}

void stream::end_child() {
  for (planned_record& one : records_) begin_anew(one);
  was_retry_ = false;
  failed_preparations_ = 0;
}

void stream::check(const sequence_position& persisted) const {
  if (!persisted.is_number() && persisted != sequence_position("SHARD_END")) return;
  for (std::size_t i = 0; i < delivered_; ++i) {
    const planned_record& one = records_[i];
    if (persisted.is_number() && one.position() > persisted) return;
    if (!one.was_ended) {
      throw violation("skipped: record " + one.data + " at " + to_string(one.position()) +
                      " is not complete, and " + to_string(persisted) + " is persisted");
    }
  }
}

}  // namespace kclxx::simulation
