// SPDX-License-Identifier: Apache-2.0
#include "processing/handlers_in_progress.hpp"

#include <algorithm>
#include <utility>

namespace kclxx::processing {

namespace {

// After that nobody reads a report, and a sum of times could overflow.
constexpr std::chrono::hours longest_interval{24 * 365 * 10};

}  // namespace

handlers_in_progress::ticket handlers_in_progress::add(arrival which, int number, time_point now) {
  if (free_.empty()) {
    free_.reserve(all_.size() + 1);  // for remove(), which must not allocate
    all_.emplace_back();
    free_.push_back(all_.size() - 1);
  }
  const ticket one{free_.back(), next_serial_++};
  free_.pop_back();
  if (number > 1) ++retrying_;
  all_[one.place] = {which, number, now, now, false, 0, one.serial};
  return one;
}

handlers_in_progress::attempt* handlers_in_progress::find(const ticket& one) noexcept {
  if (one.place >= all_.size() || all_[one.place].serial != one.serial) return nullptr;
  return &all_[one.place];
}

void handlers_in_progress::forget_reports(attempt& one) noexcept {
  if (std::exchange(one.reports, 0) > 0) --stuck_;
}

void handlers_in_progress::touch(const ticket& one, time_point now) noexcept {
  attempt* const found = find(one);
  if (found == nullptr) return;
  found->touched = now;
  forget_reports(*found);
}

handlers_in_progress::attempt handlers_in_progress::remove(const ticket& one) noexcept {
  attempt& found = all_[one.place];
  const attempt was = found;
  forget_reports(found);
  if (found.number > 1) --retrying_;
  found.serial = 0;
  free_.push_back(one.place);
  return was;
}

void handlers_in_progress::clear() {
  all_.clear();
  free_.clear();
  stuck_ = retrying_ = 0;
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::stuck_at(
    time_point now) const noexcept {
  if (stuck_after_ <= std::chrono::milliseconds(0)) return std::nullopt;
  return now + std::min<std::chrono::milliseconds>(stuck_after_, longest_interval);
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::due(
    const attempt& one) const noexcept {
  if (one.serial == 0 || one.has_ended || stuck_after_ <= std::chrono::milliseconds(0)) {
    return std::nullopt;
  }
  std::chrono::milliseconds interval = stuck_after_;
  for (int i = 0; i < one.reports; ++i) interval *= 2;
  if (interval > longest_interval) return std::nullopt;
  return one.touched + interval;
}

std::vector<handlers_in_progress::ticket> handlers_in_progress::take_due(time_point now) {
  std::vector<ticket> stuck;
  for (std::size_t place = 0; place < all_.size(); ++place) {
    attempt& one = all_[place];
    const auto when = due(one);
    if (!when || *when > now) continue;
    if (one.reports++ == 0) ++stuck_;
    stuck.push_back({place, one.serial});
  }
  return stuck;
}

std::optional<handlers_in_progress::time_point> handlers_in_progress::next_due() const noexcept {
  std::optional<time_point> first;
  for (const attempt& one : all_) {
    const auto when = due(one);
    if (when) first = std::min(first.value_or(*when), *when);
  }
  return first;
}

std::size_t handlers_in_progress::running() const noexcept {
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), [](const attempt& one) {
    return one.serial != 0 && !one.has_ended;
  }));
}

}  // namespace kclxx::processing
