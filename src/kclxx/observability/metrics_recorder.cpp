// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <kclxx/metrics_recorder.hpp>

#include "base/overloaded.hpp"
#include "base/printable.hpp"

namespace kclxx {

namespace {

using enum metrics_recorder::metric_type;

constexpr auto checkpoint_error_names = [] {
  std::array<std::string_view, detail::exception_names.size() + 1> names;
  std::copy(detail::exception_names.begin(), detail::exception_names.end(), names.begin());
  names.back() = "not answered";
  return names;
}();

/// In the order of observer::lease_ended::reason; then what ends a session that has the lease.
constexpr std::array<std::string_view, 4> lease_end_names{"lost", "finished", "closed", "failed"};

constexpr metrics_recorder::metric_family all_families[] = {
#define KCLXX_METRIC(enumerator, name, type, help, cloudwatch_name, cloudwatch_unit, label, \
                     values)                                                                \
  {name, help, type, cloudwatch_name, cloudwatch_unit, label, values},
#include <kclxx/detail/metric_families.inc>
};

// OpenTelemetry's buckets for messaging.process.duration and messaging.client.operation.duration.
constexpr std::array buckets{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25,
                             0.5,   0.75, 1.0,   2.5,  5.0,   7.5, 10.0};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double seconds(std::chrono::system_clock::time_point date) {
  return std::chrono::duration<double>(date.time_since_epoch()).count();
}

}  // namespace

std::span<const metrics_recorder::metric_family> metrics_recorder::families() noexcept {
  return all_families;
}
std::span<const double> metrics_recorder::histogram_buckets() noexcept { return buckets; }

metrics_recorder::~metrics_recorder() = default;

void metrics_recorder::record(const observer::event_source& source,
                              const observer::shard_event& event) {
  std::visit(overloaded{
                 [&](const observer::lease_gained&) {
                   has_lease_ = true;
                   add(metric::leases_gained, 1);
                   set(metric::process_id, static_cast<double>(::getpid()));
                   set(metric::last_batch, seconds(source.date));
                   set_call(seconds(source.date));
                 },
                 [&](const observer::lease_ended& end) {
                   end_lease(lease_end_names.at(static_cast<std::size_t>(end.why)));
                   set(metric::process_id, 0);  // a file that stays has no process
                   set_in_flight(0, 0, 0);
                   set_stuck(0);
                   set_call(0);
                   set(metric::circuit_open, 0);
                 },
                 [&](const observer::record_attempted& attempt) {
                   observe(metric::record_duration, seconds(attempt.duration));
                   if (call_began_ != 0) set_call(seconds(source.date));
                 },
                 [&](const observer::record_retried& retry) {
                   add(metric::retries, 1);
                   if (call_began_ != 0) set_call(seconds(source.date) + seconds(retry.delay));
                 },
                 [&](const observer::record_parked&) { add(metric::parked_records, 1); },
                 [&](const observer::record_skipped&) { add(metric::skipped_records, 1); },
                 [&](const observer::circuit_changed& circuit) {
                   set(metric::circuit_open, circuit.is_open ? 1 : 0);
                 },
                 [&](const observer::checkpoint_requested&) {},
                 [&](const observer::session_ended& end) {
                   end_lease(end.status == exit_status::ok ? "closed" : "failed");
                 },
                 [&](const observer::gap_suspected&) { add(metric::gaps, 1); },
                 [&](const observer::events_dropped&) {},
                 [&](const auto& noted) { note(source, noted); },
             },
             event);
}

void metrics_recorder::end_lease(std::string_view reason) {
  if (std::exchange(has_lease_, false)) add(metric::leases_ended, 1, reason);
}

void metrics_recorder::note(const observer::event_source& source,
                            const observer::batch_delivered& event) {
  add(metric::batches, 1);
  add(metric::records, event.records);
  add(metric::record_bytes, event.bytes);
  if (event.millis_behind_latest) {
    set(metric::behind_latest, seconds(*event.millis_behind_latest));
  }
  set(metric::last_batch, seconds(source.date));
  set_call(seconds(source.date));
  if (event.last_arrival) set(metric::last_record_arrival, seconds(*event.last_arrival));
  if (!has_window_ && event.records > 0) {
    set_in_flight(event.records, event.bytes, seconds(source.date));
  }
}

void metrics_recorder::note(const observer::event_source&, const observer::callback_ended& event) {
  set_call(0);
  if (event.how == observer::callback_ended::outcome::threw) {
    add(metric::callback_errors, 1, detail::callback_name(event.callback));
  }
  if (event.callback != observer::callback_kind::process_records) return;
  observe(metric::process_duration, seconds(event.duration));
  if (!has_window_) set_in_flight(0, 0, 0);
}

void metrics_recorder::note(const observer::event_source& source,
                            const observer::checkpoint_answered& event) {
  observe(metric::checkpoint_duration, seconds(event.duration));
  if (!event.error.empty()) {
    // Names come from the daemon. Unknown names share a series, so that the series stay few.
    const auto known =
        std::find(checkpoint_error_names.begin(), checkpoint_error_names.end(), event.error);
    const bool is_known = known != checkpoint_error_names.end();
    return add(metric::checkpoint_errors, 1, is_known ? *known : "other");
  }
  add(metric::checkpoints, 1);
  set(metric::last_checkpoint, seconds(source.date));
}

void metrics_recorder::note(const observer::event_source& source,
                            const observer::window_changed& event) {
  has_window_ = true;
  const double oldest =
      event.oldest ? seconds(source.date) - seconds(source.time - *event.oldest) : 0;
  set_in_flight(event.records, event.bytes, oldest);
}

void metrics_recorder::note(const observer::event_source& source,
                            const observer::handlers_stuck& event) {
  set(metric::stuck_handlers, static_cast<double>(event.handlers));
  set_stuck(event.handlers == 0 ? 0 : seconds(source.date) - seconds(event.oldest_age));
}

void metrics_recorder::set_call(double began) {
  call_began_ = began;
  set_oldest_call();
}

void metrics_recorder::set_stuck(double began) {
  stuck_began_ = began;
  set_oldest_call();
}

void metrics_recorder::set_oldest_call() {
  const bool has_both = call_began_ != 0 && stuck_began_ != 0;
  set(metric::oldest_call,
      has_both ? std::min(call_began_, stuck_began_) : call_began_ + stuck_began_);
}

void metrics_recorder::set_in_flight(std::size_t records, std::uint64_t bytes, double oldest) {
  set(metric::in_flight_records, static_cast<double>(records));
  set(metric::in_flight_bytes, static_cast<double>(bytes));
  set(metric::oldest_in_flight, oldest);
}

}  // namespace kclxx
