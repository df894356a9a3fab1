// SPDX-License-Identifier: Apache-2.0
#include <kclxx/detail/direct_observer.hpp>
#include <kclxx/observer.hpp>

#include "base/overloaded.hpp"

namespace kclxx {

observer::~observer() = default;
detail::direct_observer::~direct_observer() = default;

void observer::on_event(const event_source& source, const shard_event& event) {
  std::visit(overloaded{
                 [&](const lease_gained& value) { on_lease_gained(source, value); },
                 [&](const lease_ended& value) { on_lease_ended(source, value); },
                 [&](const batch_delivered& value) { on_batch_delivered(source, value); },
                 [&](const callback_ended& value) { on_callback_ended(source, value); },
                 [&](const checkpoint_requested& value) { on_checkpoint_requested(source, value); },
                 [&](const checkpoint_answered& value) { on_checkpoint_answered(source, value); },
                 [&](const session_ended& value) { on_session_ended(source, value); },
                 [&](const record_attempted& value) { on_record_attempted(source, value); },
                 [&](const record_retried& value) { on_record_retried(source, value); },
                 [&](const record_parked& value) { on_record_parked(source, value); },
                 [&](const record_skipped& value) { on_record_skipped(source, value); },
                 [&](const circuit_changed& value) { on_circuit_changed(source, value); },
                 [&](const window_changed& value) { on_window_changed(source, value); },
                 [&](const handlers_stuck& value) { on_handlers_stuck(source, value); },
             },
             event);
}

void observer::on_lease_gained(const event_source&, const lease_gained&) {}
void observer::on_lease_ended(const event_source&, const lease_ended&) {}
void observer::on_batch_delivered(const event_source&, const batch_delivered&) {}
void observer::on_callback_ended(const event_source&, const callback_ended&) {}
void observer::on_checkpoint_requested(const event_source&, const checkpoint_requested&) {}
void observer::on_checkpoint_answered(const event_source&, const checkpoint_answered&) {}
void observer::on_session_ended(const event_source&, const session_ended&) {}
void observer::on_record_attempted(const event_source&, const record_attempted&) {}
void observer::on_record_retried(const event_source&, const record_retried&) {}
void observer::on_record_parked(const event_source&, const record_parked&) {}
void observer::on_record_skipped(const event_source&, const record_skipped&) {}
void observer::on_circuit_changed(const event_source&, const circuit_changed&) {}
void observer::on_window_changed(const event_source&, const window_changed&) {}
void observer::on_handlers_stuck(const event_source&, const handlers_stuck&) {}
void observer::on_events_dropped(const event_source&, std::uint64_t) {}

}  // namespace kclxx
