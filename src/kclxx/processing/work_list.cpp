// SPDX-License-Identifier: Apache-2.0
#include "processing/work_list.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/printable.hpp"

namespace kclxx::processing {

using std::chrono::milliseconds;

namespace {

std::string text_of(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
}

std::string key_of(const record& record) {
  return std::string(record.partition_key().value_or(""));
}

}  // namespace

std::string stuck_report::text() const {
  return (is_parking ? "the parking lot is stuck: it has had record "
                     : "a handler is stuck: it has had record ") +
         record + " for " + text_of(event.age) + "; the oldest record that is not complete is " +
         oldest_record;
}

work_list::work_list(const parallel_options& options, bool is_async)
    : is_async_(is_async),
      lanes_(options.lanes),
      queue_(options.order, options.window_records, options.window_bytes),
      handlers_(options.stuck_after) {}

std::size_t work_list::runners_wanted(std::size_t runners) const {
  if (!is_async_) return std::min(lanes_ - runners, queue_.ready());
  const bool has_work = !failed_.empty() || (queue_.ready() > 0 && has_lane());
  return runners == 0 && has_work ? 1 : 0;
}

std::optional<work> work_list::take(time_point now, circuit::probe_id probe) {
  std::optional<work> taken;
  if (!failed_.empty()) {
    taken = std::move(failed_.front());
    failed_.pop_front();
    return taken;
  }
  if (!is_for_handler()) return taken;
  // So that failing keys do not hold up the others: while new records are ready, retries have half
  // of the lanes, and do not follow each other.
  using choice = record_queue::choice;
  const std::size_t most = std::max<std::size_t>(1, lanes_ / 2);
  const bool is_probe = probe != circuit::no_probe;
  const bool is_retry_next =
      !was_retry_ && (is_probe ? was_new_probe_ : handlers_.retrying() < most);
  const auto number = queue_.take(is_retry_next ? choice::failed : choice::oldest);
  if (is_probe) attempts_[*number].at_circuit.probe = probe;
  taken.emplace();
  taken->record = &window().at(*number);
  taken->began = now;
  taken->attempt = attempt_of(*number);
  was_retry_ = taken->attempt > 1;
  was_new_probe_ = is_probe && !was_retry_;
  if (is_async_) taken->batch = window().batch_of(*number);
  taken->ticket = handlers_.add(*number, taken->attempt, now);
  return taken;
}

const handlers_in_progress::attempt* work_list::running(const attempt_ticket& ticket) noexcept {
  const auto* const found = handlers_.find(ticket);
  return found != nullptr && found->at == handlers_in_progress::attempt::step::runs ? found
                                                                                    : nullptr;
}

void work_list::complete(const attempt_ticket& ticket) {
  const ordinal number = handlers_.remove(ticket).record_number;
  if (!attempts_.empty()) attempts_.erase(number);  // seldom: a search for each record costs
  queue_.complete(number);
}

void work_list::retry(const attempt_ticket& ticket, failed_attempts attempts, time_point due) {
  const ordinal number = handlers_.remove(ticket).record_number;
  attempts_[number] = std::move(attempts);
  queue_.retry_at(number, due);
}

void work_list::fail(const attempt_ticket& ticket, std::exception_ptr exception, time_point now) {
  auto& attempt = *handlers_.find(ticket);
  handlers_.fail(attempt);
  failed_.push_back({ticket,
                     std::move(exception),
                     &window().at(attempt.record_number),
                     {},
                     attempt.number,
                     attempt.began,
                     now});
}

bool work_list::fail_thrown(const work& thrown_by, std::exception_ptr& thrown, time_point now) {
  if (running(thrown_by.ticket) != nullptr) {
    fail(thrown_by.ticket, std::move(thrown), now);
    return true;
  }
  const auto reported = std::find_if(failed_.begin(), failed_.end(), [&](const work& failed) {
    return failed.ticket.serial == thrown_by.ticket.serial;
  });
  if (reported == failed_.end()) return false;
  std::swap(reported->failed, thrown);  // most likely dropped, since this was thrown
  return true;
}

failed_attempts work_list::begin_decision(const attempt_ticket& ticket) {
  auto& attempt = *handlers_.find(ticket);
  handlers_.fail(attempt);
  const auto found = attempts_.find(attempt.record_number);
  return found == attempts_.end() ? failed_attempts{} : found->second;
}

observer::handlers_stuck work_list::stuck(time_point now) const {
  const auto oldest = handlers_.oldest_stuck();
  return {.handlers = handlers_.stuck(),
          .oldest_age =
              oldest ? std::chrono::duration_cast<milliseconds>(now - *oldest) : milliseconds(0)};
}

std::optional<stuck_report> work_list::report(const attempt_ticket& ticket, time_point now) {
  const auto* const attempt = handlers_.find(ticket);
  if (attempt == nullptr || attempt->reports == 0) return std::nullopt;
  const record& reported = window().at(attempt->record_number);
  auto event = stuck(now);
  event.position = reported.position();
  event.partition_key = key_of(reported);
  event.attempt = attempt->number;
  event.age = std::chrono::duration_cast<milliseconds>(now - attempt->began);
  return stuck_report{std::move(event), describe(attempt->record_number),
                      attempt->at == handlers_in_progress::attempt::step::parking,
                      describe(window().begin()) + ", delivered " +
                          text_of(now - window().oldest_delivery()) + " ago"};
}

void work_list::clear() {
  queue_.clear();
  handlers_.clear();
  attempts_.clear();
  dropped_.swap(failed_);
}

int work_list::attempt_of(ordinal number) const {
  const auto found = attempts_.find(number);
  return found == attempts_.end() ? 1 : found->second.count + 1;
}

std::string work_list::describe(ordinal number) const {
  const record& record = window().at(number);
  std::string text = to_string(record.position());
  if (const auto key = record.partition_key())
    text.append(" (partition key ").append(detail::quoted(*key));
  else
    text += " (no partition key";
  return text + ", attempt " + std::to_string(attempt_of(number)) + ")";
}

}  // namespace kclxx::processing
