// SPDX-License-Identifier: Apache-2.0
#include "processing/handlers_in_progress.hpp"

#include <algorithm>
#include <utility>

#include "base/duration.hpp"

namespace kclxx::processing {

attempt_ticket handlers_in_progress::add(ordinal record_number, int attempt_number,
                                         time_point now) {
  if (free_.empty()) {
    free_.reserve(all_.size() + 1);  // for remove(), which must not allocate
    all_.emplace_back();
    free_.push_back(all_.size() - 1);
  }
  const attempt_ticket ticket{free_.back(), next_serial_++};
  free_.pop_back();
  if (attempt_number > 1) ++retrying_;
  ++running_;
  all_[ticket.place] = {.record_number = record_number,
                        .number = attempt_number,
                        .began = now,
                        .touched = now,
                        .serial = ticket.serial};
  return ticket;
}

handlers_in_progress::attempt* handlers_in_progress::find(const attempt_ticket& ticket) noexcept {
  if (ticket.place >= all_.size() || all_[ticket.place].serial != ticket.serial) return nullptr;
  return &all_[ticket.place];
}

void handlers_in_progress::forget_reports(attempt& reported) noexcept {
  if (std::exchange(reported.reports, 0) > 0) --stuck_;
}

void handlers_in_progress::touch(const attempt_ticket& ticket, time_point now) noexcept {
  attempt* const found = find(ticket);
  if (found == nullptr) return;
  found->touched = now;
  forget_reports(*found);
}

handlers_in_progress::attempt handlers_in_progress::remove(const attempt_ticket& ticket) noexcept {
  attempt& found = all_[ticket.place];
  const attempt was = found;
  forget_reports(found);
  if (found.number > 1) --retrying_;
  if (found.at == attempt::step::runs) --running_;
  found.serial = 0;
  free_.push_back(ticket.place);
  return was;
}

void handlers_in_progress::fail(attempt& ended) noexcept {
  if (ended.at == attempt::step::runs) --running_;
  ended.at = attempt::step::failed;
}

void handlers_in_progress::begin_parking(const attempt_ticket& ticket, time_point now) noexcept {
  attempt& parked = all_[ticket.place];
  fail(parked);
  forget_reports(parked);
  parked.at = attempt::step::parking;
  parked.began = parked.touched = now;
}

void handlers_in_progress::clear() {
  all_.clear();
  free_.clear();
  stuck_ = retrying_ = running_ = 0;
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::oldest_stuck()
    const noexcept {
  std::optional<time_point> first;
  for (const attempt& begun : all_) {
    if (begun.reports > 0) first = std::min(first.value_or(begun.began), begun.began);
  }
  return first;
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::stuck_at(
    time_point now) const noexcept {
  if (stuck_after_ <= std::chrono::milliseconds(0)) return std::nullopt;
  return now + std::min<std::chrono::milliseconds>(stuck_after_, detail::ten_years);
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::due(
    const attempt& begun) const noexcept {
  if (begun.serial == 0 || begun.at == attempt::step::failed ||
      stuck_after_ <= std::chrono::milliseconds(0)) {
    return std::nullopt;
  }
  std::chrono::milliseconds interval = stuck_after_;
  for (int i = 0; i < begun.reports; ++i) interval *= 2;
  if (interval > detail::ten_years) return std::nullopt;
  return begun.touched + interval;
}

std::vector<attempt_ticket> handlers_in_progress::take_due(time_point now) {
  std::vector<attempt_ticket> stuck;
  for (std::size_t place = 0; place < all_.size(); ++place) {
    attempt& begun = all_[place];
    const auto when = due(begun);
    if (!when || *when > now) continue;
    if (begun.reports++ == 0) ++stuck_;
    stuck.push_back({place, begun.serial});
  }
  return stuck;
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::next_due() const noexcept {
  std::optional<time_point> first;
  for (const attempt& begun : all_) {
    const auto when = due(begun);
    if (when) first = std::min(first.value_or(*when), *when);
  }
  return first;
}

}  // namespace kclxx::processing
