// SPDX-License-Identifier: Apache-2.0
#include "processing/window.hpp"

#include <algorithm>

#include "base/duration.hpp"
#include "base/invariant.hpp"
#include "base/printable.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

namespace {

std::string text_of(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
}

std::string stuck_of(window::state in) {
  return in == window::state::parking  ? "the parking lot"
         : in == window::state::failed ? "the decision on a failure"
                                       : "a handler";
}

}  // namespace

window::window(const parallel_options& options, bool is_async)
    : is_async_(is_async),
      order_(options.order),
      lanes_(options.lanes),
      most_records_(options.window_records),
      most_bytes_(options.window_bytes),
      stuck_after_(options.stuck_after) {}

std::size_t window::admit(const record_batch& batch, std::size_t offset, time_point now,
                          std::span<std::string> keys) {
  const ordinal first = first_ + entries_.size();
  std::size_t at = offset;
  for (; at < batch.size() && fits(batch[at].data().size()); ++at) {
    const ordinal number = first + (at - offset);
    entry& added = entries_.emplace_back(entry{&batch[at]});
    bytes_ += batch[at].data().size();
    incomplete_bytes_ += batch[at].data().size();
    if (order_ == order::key) {
      std::optional<std::string> key(batch[at].partition_key());
      if (!keys.empty()) key = std::move(keys[at]);
      const auto [newest, is_first] = keys_.try_emplace(std::move(key), number);
      added.key = &*newest;
      if (!is_first) {
        added.at = state::waits_for_key;
        entry_of(std::exchange(newest->second, number)).next_of_key = number;
      }
    }
    if (added.at == state::ready) new_.push(number);
  }
  const std::size_t count = at - offset;
  incomplete_ += count;
  if (count > 0) spans_.push_back({first, batch.slice(offset, count), now});
  return count;
}

bool window::wants_more(std::uint64_t next_bytes) const noexcept {
  if (!fits(next_bytes)) return false;
  if (ready() == 0) return true;
  return most_records_ - entries_.size() >= (most_records_ + 7) / 8 &&
         bytes_ <= most_bytes_ - most_bytes_ / 8;
}

/// So that failing keys do not hold up the others: while new records are ready, retries have half
/// of the lanes, and do not follow each other. An open circuit admits one attempt at a time, of a
/// failed record only when no new one is ready: a record that has failed tells less of an outage.
window::begun window::begin(time_point now, circuit::probe_id probe) {
  const bool is_probe = probe != circuit::no_probe;
  const bool is_retry_next =
      !is_probe && !was_retry_ && retrying_ < std::max<std::size_t>(1, lanes_ / 2);
  const ordinal number = take_ready(is_retry_next);
  entry& one = entry_of(number);
  if (is_probe) failures_of(one).at_circuit.probe = probe;
  const ticket name{number, one.failures ? one.failures->count + 1 : 1};
  was_retry_ = name.attempt > 1;
  if (was_retry_) ++retrying_;
  one.place = attempts_.size();
  attempts_.push_back({name, now, now});
  change_state(one, state::with_handler);
  return {name, one.record, is_async_ ? batch_of(number) : record_batch()};
}

failed_attempts& window::failures_of(entry& one) {
  if (!one.failures) one.failures = std::make_unique<failed_attempts>();
  return *one.failures;
}

ordinal window::take_ready(bool is_retry_first) {
  ordinal taken = 0;
  if (!due_.empty() && (is_retry_first || new_.empty())) {
    taken = due_.front();
    due_.pop_front();
  } else {
    taken = new_.top();
    new_.pop();
  }
  return taken;
}

void window::make_due_ready(time_point now) {
  while (!retries_.empty() && retries_.top().first <= now) {
    const ordinal number = retries_.top().second;
    entry_of(number).at = state::ready;
    due_.push_back(number);
    retries_.pop();
  }
}

std::optional<window::time_point> window::next_retry() const {
  return retries_.empty() ? std::nullopt : std::optional(retries_.top().first);
}

const window::attempt* window::find(const ticket& one) const noexcept {
  const ordinal number = one.record_number;
  if (number < first_ || number - first_ >= entries_.size()) return nullptr;
  const entry& found = entry_of(number);
  if (found.at < state::with_handler || found.at > state::parking) return nullptr;
  const attempt& latest = attempts_[found.place];
  return latest.name.attempt == one.attempt ? &latest : nullptr;
}

window::attempt& window::attempt_of(const ticket& one) {
  const bool is_there = find(one) != nullptr;
  detail::require_invariant(is_there, "a record is completed twice, or before it was delivered");
  return attempts_[entry_of(one.record_number).place];
}

void window::change_state(entry& one, state next) noexcept {
  if (one.at == state::with_handler) --running_;
  if (next == state::with_handler) ++running_;
  one.at = next;
}

window::entry& window::end_attempt(const ticket& one, state next) {
  attempt& ended = attempt_of(one);
  forget_reports(ended);
  if (one.attempt > 1) --retrying_;
  entry& of = entry_of(one.record_number);
  change_state(of, next);
  entry_of(attempts_.back().name.record_number).place = of.place;
  ended = attempts_.back();
  attempts_.pop_back();
  return of;
}

void window::forget_reports(attempt& reported) noexcept {
  if (std::exchange(reported.reports, 0) > 0) --stuck_;
}

void window::complete(const ticket& one) {
  const entry& of = end_attempt(one, state::complete);
  --incomplete_;
  incomplete_bytes_ -= of.record->data().size();
  if (of.next_of_key != 0) {
    entry_of(of.next_of_key).at = state::ready;
    new_.push(of.next_of_key);
  } else if (of.key != nullptr) {
    keys_.erase(of.key->first);
  }
  while (!entries_.empty() && entries_.front().at == state::complete) {
    entries_.pop_front();
    if (++first_ == spans_.front().end()) pass_front();
  }
}

window::entry& window::go_on(const ticket& one, state next, time_point now) {
  attempt& goes_on = attempt_of(one);
  forget_reports(goes_on);
  goes_on.began = goes_on.touched = now;
  entry& of = entry_of(one.record_number);
  change_state(of, next);
  return of;
}

void window::retry(const ticket& one, time_point due) {
  end_attempt(one, state::waits_for_retry);
  retries_.emplace(due, one.record_number);
}

void window::touch(const ticket& one, time_point now) noexcept {
  if (find(one) == nullptr) return;
  attempt& touched = attempt_of(one);
  touched.touched = now;
  forget_reports(touched);
}

observer::handlers_stuck window::stuck(time_point now) const {
  observer::handlers_stuck event{.handlers = stuck_};
  for (const attempt& one : attempts_) {
    if (one.reports == 0) continue;
    event.oldest_age =
        std::max(event.oldest_age, std::chrono::duration_cast<milliseconds>(now - one.began));
  }
  return event;
}

std::optional<window::time_point> window::stuck_at(time_point now) const noexcept {
  return stuck_after_.count() > 0 ? std::optional(now + stuck_after_) : std::nullopt;
}

std::optional<window::time_point> window::next_report(const attempt& one) const noexcept {
  const milliseconds interval = stuck_after_ * (std::int64_t{1} << one.reports);
  if (interval.count() == 0 || interval > detail::ten_years) return std::nullopt;
  return one.touched + interval;
}

std::optional<window::time_point> window::next_stuck() const noexcept {
  std::optional<time_point> next;
  for (const attempt& one : attempts_) {
    const auto report = next_report(one);
    if (report) next = std::min(next.value_or(*report), *report);
  }
  return next;
}

std::vector<stuck_report> window::take_stuck(time_point now) {
  std::vector<attempt> due;
  for (attempt& one : attempts_) {
    const auto report = next_report(one);
    if (!report || *report > now) continue;
    if (one.reports++ == 0) ++stuck_;
    due.push_back(one);
  }
  std::sort(due.begin(), due.end(), [](const attempt& one, const attempt& other) {
    return one.name.record_number < other.name.record_number;
  });
  std::vector<stuck_report> reports;
  for (const attempt& one : due) {
    const entry& of = entry_of(one.name.record_number);
    auto event = stuck(now);
    event.position = of.record->position();
    event.partition_key = std::string(of.record->partition_key().value_or(""));
    event.attempt = one.name.attempt;
    event.age = std::chrono::duration_cast<milliseconds>(now - one.began);
    const std::string name = describe(one.name.record_number);
    const std::string text = stuck_of(of.at) + " is stuck: it has had record " + name + " for " +
                             text_of(event.age) + "; the oldest record that is not complete is " +
                             describe(first_) + ", delivered " + text_of(now - oldest_delivery()) +
                             " ago";
    reports.push_back({std::move(event), name, text});
  }
  return reports;
}

std::string window::describe(ordinal number) const {
  const entry& one = entry_of(number);
  const bool is_tried = one.at >= state::with_handler;
  const int which = is_tried       ? attempts_[one.place].name.attempt
                    : one.failures ? one.failures->count + 1
                                   : 1;
  std::string text = to_string(one.record->position());
  if (const auto key = one.record->partition_key()) {
    text.append(" (partition key ").append(detail::quoted(*key));
  } else {
    text += " (no partition key";
  }
  return text + ", attempt " + std::to_string(which) + ")";
}

void window::pass_front() {
  passed_ = watermark();
  for (const record& one : spans_.front().records) bytes_ -= one.data().size();
  passed_batches_.push_back(std::move(spans_.front().records));
  spans_.pop_front();
}

const record_batch& window::batch_of(ordinal number) const {
  const auto after = std::upper_bound(
      spans_.begin(), spans_.end(), number,
      [](ordinal value, const span& delivered) { return value < delivered.first; });
  return (after - 1)->records;
}

std::optional<sequence_position> window::watermark() const {
  if (spans_.empty() || spans_.front().first == first_) return passed_;
  const sequence_position last =
      spans_.front().records[first_ - 1 - spans_.front().first].position();
  return passed_ && last < *passed_ ? passed_ : last;
}

}  // namespace kclxx::processing
