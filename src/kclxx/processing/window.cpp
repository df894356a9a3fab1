// SPDX-License-Identifier: Apache-2.0
#include "processing/window.hpp"

#include <algorithm>
#include <iterator>

#include "base/duration.hpp"
#include "base/invariant.hpp"
#include "base/printable.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

namespace {

std::string text_of(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
}

/// What has a record in this state.
std::string owner_in(window::state state) {
  return state == window::state::parking  ? "the parking lot"
         : state == window::state::failed ? "the decision on a failure"
                                          : "a handler";
}

}  // namespace

window::window(const parallel_options& options, bool is_async)
    : is_async_(is_async),
      order_(options.order),
      lanes_(options.lanes),
      max_records_(options.window_records),
      max_bytes_(options.window_bytes),
      stuck_after_(options.stuck_after) {}

std::size_t window::admit(const record_batch& batch, std::size_t offset, time_point now,
                          std::span<std::string> keys) {
  const ordinal first = first_ + entries_.size();
  std::size_t index = offset;
  for (; index < batch.size() && has_room_for(batch[index].data().size()); ++index) {
    const ordinal number = first + (index - offset);
    entry& added = entries_.emplace_back(entry{&batch[index]});
    bytes_ += batch[index].data().size();
    incomplete_bytes_ += batch[index].data().size();
    if (order_ == order::key) {
      std::optional<std::string> key(batch[index].partition_key());
      if (!keys.empty()) key = std::move(keys[index]);
      const auto [newest, is_first] = keys_.try_emplace(std::move(key), number);
      added.key = &*newest;
      if (!is_first) {
        added.state = state::waits_for_key;
        entry_of(std::exchange(newest->second, number)).next_of_key = number;
      }
    }
    if (added.state == state::ready) ready_first_attempts_.push(number);
  }
  const std::size_t count = index - offset;
  incomplete_ += count;
  if (count > 0) spans_.push_back({first, batch.slice(offset, count), now});
  return count;
}

bool window::wants_more(std::uint64_t record_bytes) const noexcept {
  if (!has_room_for(record_bytes)) return false;
  if (ready() == 0) return true;
  return max_records_ - entries_.size() >= (max_records_ + 7) / 8 &&
         bytes_ <= max_bytes_ - max_bytes_ / 8;
}

/// Keys that fail must not hold up the others. So, while new records are ready, retries have half
/// of the lanes at most, and do not follow each other. An open circuit admits one attempt at a
/// time: that of a new record, if any is ready, since a record that has failed before tells less of
/// an outage.
window::begun_attempt window::begin(time_point now, circuit::probe_id probe) {
  const bool is_probe = probe != circuit::no_probe;
  const bool is_retry_first =
      !is_probe && !was_retry_ && retries_ < std::max<std::size_t>(1, lanes_ / 2);
  const ordinal number = take_ready(is_retry_first);
  entry& begun = entry_of(number);
  if (is_probe) failures_of(begun).at_circuit.probe = probe;
  const attempt_id id{number, begun.failures ? begun.failures->count + 1 : 1};
  was_retry_ = id.attempt > 1;
  if (was_retry_) ++retries_;
  begun.attempt_index = attempts_.size();
  start_stuck_clock(attempts_.emplace_back(attempt{id, now, now}), now);
  change_state(begun, state::with_handler);
  return {id, begun.record, is_async_ ? batch_of(number) : record_batch()};
}

failed_attempts& window::failures_of(entry& failed) {
  if (!failed.failures) failed.failures = std::make_unique<failed_attempts>();
  return *failed.failures;
}

ordinal window::take_ready(bool is_retry_first) {
  ordinal taken = 0;
  if (!ready_retries_.empty() && (is_retry_first || ready_first_attempts_.empty())) {
    taken = ready_retries_.front();
    ready_retries_.pop_front();
  } else {
    taken = ready_first_attempts_.top();
    ready_first_attempts_.pop();
  }
  return taken;
}

void window::make_due_ready(time_point now) {
  while (!waiting_retries_.empty() && waiting_retries_.top().first <= now) {
    const ordinal number = waiting_retries_.top().second;
    entry_of(number).state = state::ready;
    ready_retries_.push_back(number);
    waiting_retries_.pop();
  }
}

std::optional<window::time_point> window::next_retry() const {
  return waiting_retries_.empty() ? std::nullopt : std::optional(waiting_retries_.top().first);
}

const window::attempt* window::find(const attempt_id& id) const noexcept {
  const ordinal number = id.record_number;
  if (number < first_ || number - first_ >= entries_.size()) return nullptr;
  const entry& named = entry_of(number);
  if (named.state < state::with_handler || named.state > state::parking) return nullptr;
  const attempt& latest = attempts_[named.attempt_index];
  return latest.id.attempt == id.attempt ? &latest : nullptr;
}

window::attempt& window::attempt_of(const attempt_id& id) {
  const bool has_not_ended = find(id) != nullptr;
  detail::require_invariant(has_not_ended,
                            "a record is completed twice, or before it was delivered");
  return attempts_[entry_of(id.record_number).attempt_index];
}

void window::change_state(entry& changed, state next) noexcept {
  if (changed.state == state::with_handler) --handlers_;
  if (next == state::with_handler) ++handlers_;
  changed.state = next;
}

window::entry& window::end_attempt(const attempt_id& id, state next) {
  attempt& ended = attempt_of(id);
  forget_reports(ended);
  if (id.attempt > 1) --retries_;
  entry& owner = entry_of(id.record_number);
  change_state(owner, next);
  // The last attempt takes the place of the one that ends.
  entry_of(attempts_.back().id.record_number).attempt_index = owner.attempt_index;
  ended = attempts_.back();
  attempts_.pop_back();
  return owner;
}

void window::forget_reports(attempt& reported) noexcept {
  if (std::exchange(reported.reports, 0) > 0) --stuck_;
}

void window::complete(const attempt_id& id) {
  const entry& completed = end_attempt(id, state::complete);
  --incomplete_;
  incomplete_bytes_ -= completed.record->data().size();
  if (completed.next_of_key != 0) {
    entry_of(completed.next_of_key).state = state::ready;
    ready_first_attempts_.push(completed.next_of_key);
  } else if (completed.key != nullptr) {
    keys_.erase(completed.key->first);
  }
  while (!entries_.empty() && entries_.front().state == state::complete) {
    entries_.pop_front();
    if (++first_ == spans_.front().end()) pass_front();
  }
}

window::entry& window::enter(const attempt_id& id, state next, time_point now) {
  attempt& entering = attempt_of(id);
  entering.began = now;
  start_stuck_clock(entering, now);
  entry& owner = entry_of(id.record_number);
  change_state(owner, next);
  return owner;
}

void window::retry(const attempt_id& id, time_point due) {
  end_attempt(id, state::waits_for_retry);
  waiting_retries_.emplace(due, id.record_number);
}

void window::touch(const attempt_id& id, time_point now) noexcept {
  if (find(id) != nullptr) start_stuck_clock(attempt_of(id), now);
}

void window::start_stuck_clock(attempt& watched, time_point now) noexcept {
  forget_reports(watched);
  watched.last_progress = now;
  const auto report = next_report(watched);
  if (report) next_stuck_ = std::min(next_stuck_.value_or(*report), *report);
}

observer::handlers_stuck window::stuck_event(time_point now) const {
  observer::handlers_stuck event{.handlers = stuck_};
  for (const attempt& running : attempts_) {
    if (running.reports == 0) continue;
    event.oldest_age =
        std::max(event.oldest_age, std::chrono::duration_cast<milliseconds>(now - running.began));
  }
  return event;
}

std::optional<window::time_point> window::next_report(const attempt& watched) const noexcept {
  const milliseconds interval = stuck_after_ * (std::int64_t{1} << watched.reports);
  if (interval.count() == 0 || interval > detail::ten_years) return std::nullopt;
  return watched.last_progress + interval;
}

std::vector<stuck_report> window::take_stuck(time_point now) {
  if (!next_stuck_ || now < *next_stuck_) return {};
  std::vector<attempt> due;
  next_stuck_.reset();
  for (attempt& running : attempts_) {
    auto report = next_report(running);
    if (report && *report <= now) {
      if (running.reports++ == 0) ++stuck_;
      due.push_back(running);
      report = next_report(running);
    }
    if (report) next_stuck_ = std::min(next_stuck_.value_or(*report), *report);
  }
  std::sort(due.begin(), due.end(), [](const attempt& a, const attempt& b) {
    return a.id.record_number < b.id.record_number;
  });
  std::vector<stuck_report> reports;
  for (const attempt& stuck_attempt : due) {
    const entry& owner = entry_of(stuck_attempt.id.record_number);
    auto event = stuck_event(now);
    event.position = owner.record->position();
    event.partition_key = std::string(owner.record->partition_key().value_or(""));
    event.attempt = stuck_attempt.id.attempt;
    event.age = std::chrono::duration_cast<milliseconds>(now - stuck_attempt.began);
    const std::string name = describe(stuck_attempt.id.record_number);
    const std::string text = owner_in(owner.state) + " is stuck: it has had record " + name +
                             " for " + text_of(event.age) +
                             "; the oldest record that is not complete is " + describe(first_) +
                             ", delivered " + text_of(now - oldest_delivery()) + " ago";
    reports.push_back({std::move(event), name, text});
  }
  return reports;
}

std::string window::describe(ordinal number) const {
  const entry& described = entry_of(number);
  const bool is_tried = described.state >= state::with_handler;
  const int which = is_tried             ? attempts_[described.attempt_index].id.attempt
                    : described.failures ? described.failures->count + 1
                                         : 1;
  std::string text = to_string(described.record->position());
  if (const auto key = described.record->partition_key()) {
    text.append(" (partition key ").append(detail::quoted(*key));
  } else {
    text += " (no partition key";
  }
  return text + ", attempt " + std::to_string(which) + ")";
}

void window::pass_front() {
  passed_ = watermark();
  for (const record& passed : spans_.front().records) bytes_ -= passed.data().size();
  passed_batches_.push_back(std::move(spans_.front().records));
  spans_.pop_front();
}

const record_batch& window::batch_of(ordinal number) const {
  const auto next = std::upper_bound(
      spans_.begin(), spans_.end(), number,
      [](ordinal value, const span& delivered) { return value < delivered.first; });
  return std::prev(next)->records;
}

std::optional<sequence_position> window::watermark() const {
  if (spans_.empty() || spans_.front().first == first_) return passed_;
  const sequence_position last =
      spans_.front().records[first_ - 1 - spans_.front().first].position();
  return passed_ && last < *passed_ ? passed_ : last;
}

}  // namespace kclxx::processing
