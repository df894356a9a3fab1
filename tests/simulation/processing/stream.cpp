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
    planned_record planned{std::to_string(sequence),    sub, "key-" + std::to_string(key),
                           std::to_string(i),           0,   false,
                           std::chrono::milliseconds(0)};
    if (is_crowded ? key % 2 == 0 : random.chance(25)) {
      planned.is_good = false;
      planned.failures =
          is_crowded || random.chance(30) ? -1 : static_cast<int>(1 + random.below(6));
      planned.is_permanent = !is_crowded && random.chance(20);
    }
    if (random.chance(is_crowded ? 80 : 40)) {
      planned.time = std::chrono::milliseconds(random.below(3000));
    }
    records_.push_back(std::move(planned));
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
  const auto oldest = std::find_if(records_.begin(), end, [&](const planned_record& planned) {
    return planned.how == planned_record::end::none &&
           (!persisted.is_number() || planned.position() > persisted);
  });
  return static_cast<std::size_t>(end - oldest);
}

void stream::begin(const record& event, bool is_first) {
  planned_record& what = of(event);
  if (what.how != planned_record::end::none) {
    throw violation("twice: record " + what.data + " was complete and comes again");
  }
  if (what.is_in_progress) throw violation("twice: record " + what.data + " is in progress");
  what.is_in_progress = true;
  ++what.attempts;
  if (keeps_order_ && is_first) require_order(number_of(event));
}

void stream::require_order(std::size_t number) const {
  for (std::size_t earlier = 0; earlier < number; ++earlier) {
    const planned_record& before = records_[earlier];
    if (before.key == records_[number].key && !before.was_ended) {
      throw violation("order: record " + records_[number].data + " comes before " + before.data +
                      " of its key is complete");
    }
  }
}

void stream::require_new_work(const record& event, std::size_t lanes, bool is_circuit_open) {
  const bool is_retry = of(event).attempts > 1;
  const bool was_retry = std::exchange(was_retry_, is_retry);
  const planned_record* const waits = is_retry ? ready_for_first_attempt() : nullptr;
  if (waits == nullptr) return;
  const auto retries = std::count_if(records_.begin(), records_.end(), [](const auto& planned) {
    return planned.is_in_progress && planned.attempts > 1;
  });
  if (is_circuit_open || was_retry ||
      static_cast<std::size_t>(retries) > std::max<std::size_t>(1, lanes / 2)) {
    throw violation("starvation: record " + of(event).data + " is tried again, and " + waits->data +
                    " waits for its first attempt");
  }
}

void stream::require_failed(std::int64_t records) const {
  const auto failed = std::count_if(records_.begin(), records_.end(),
                                    [](const auto& planned) { return planned.has_failed; });
  if (failed < records) {
    throw violation("circuit: it opens after failures of " + std::to_string(failed) + " records");
  }
}

void stream::require_lane(std::size_t lanes) const {
  const auto running = std::count_if(records_.begin(), records_.end(),
                                     [](const auto& planned) { return planned.is_in_progress; });
  if (static_cast<std::size_t>(running) > lanes) {
    throw violation("lanes: handlers have " + std::to_string(running) + " records");
  }
}

const planned_record* stream::ready_for_first_attempt() const {
  const auto found = std::find_if(records_.begin(), records_.end(), [&](const auto& planned) {
    if (!planned.arrived || planned.attempts > 0) return false;
    return !keeps_order_ || std::none_of(records_.data(), &planned, [&](const auto& earlier) {
      return earlier.key == planned.key && earlier.arrived &&
             earlier.how == planned_record::end::none;
    });
  });
  return found == records_.end() ? nullptr : &*found;
}

void stream::require_handed_over(std::chrono::steady_clock::time_point now,
                                 std::chrono::milliseconds linger) const {
  for (const planned_record& planned : records_) {
    if (planned.arrived && planned.attempts == 0 && now - *planned.arrived >= linger) {
      throw violation("linger: record " + planned.data + " still waits after " +
                      std::to_string(linger.count()) + " ms");
    }
  }
}

void stream::leave(const record& event) {
  of(event).is_in_progress = false;
  of(event).was_left = true;
}

void stream::fail(const record& event, int most_attempts) {
  planned_record& what = of(event);
  what.is_in_progress = false;
  ++what.failed;
  const int most = what.is_permanent ? 1 : most_attempts;
  if (most > 0 && what.failed > most + what.failed_parkings + failed_preparations_) {
    throw violation("attempts: record " + what.data + " had " + std::to_string(what.failed));
  }
}

void stream::end(const record& event, planned_record::end ending) {
  planned_record& what = of(event);
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
  const auto found = std::find_if(records_.begin(), records_.end(), [&](const auto& planned) {
    return to_string(planned.position()) == position;
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

void stream::begin_anew(planned_record& planned) {
  if (planned.how == planned_record::end::parked && !planned.is_parked_in_log) {
    throw violation("silent: no line states that record " + planned.data + " was parked");
  }
  planned.how = planned_record::end::none;
  planned.attempts = planned.failed = planned.failed_parkings = 0;
  planned.arrived.reset();
  planned.is_in_progress = planned.was_left = planned.is_parked_in_log = planned.is_repeated =
      false;
  planned.has_failed = false;
}

void stream::repeat(const record& event, std::chrono::steady_clock::time_point now) {
  begin_anew(of(event));
  of(event).arrived = now;
  of(event).is_repeated = true;
}

void stream::end_child() {
  for (planned_record& planned : records_) begin_anew(planned);
  was_retry_ = false;
  failed_preparations_ = 0;
}

void stream::check(const sequence_position& persisted) const {
  if (!persisted.is_number() && persisted != sequence_position("SHARD_END")) return;
  for (std::size_t i = 0; i < delivered_; ++i) {
    const planned_record& planned = records_[i];
    if (persisted.is_number() && planned.position() > persisted) return;
    if (!planned.was_ended) {
      throw violation("skipped: record " + planned.data + " at " + to_string(planned.position()) +
                      " is not complete, and " + to_string(persisted) + " is persisted");
    }
  }
}

}  // namespace kclxx::simulation
