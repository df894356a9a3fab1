// SPDX-License-Identifier: Apache-2.0
#include <kclxx/observer.hpp>

#include "base/overloaded.hpp"

namespace kclxx {

observer::~observer() = default;

void observer::on_event(const event_source& source, const shard_event& event) {
  std::visit(overloaded{
                 [&](const lease_gained& what) { on_lease_gained(source, what); },
                 [&](const lease_ended& what) { on_lease_ended(source, what); },
                 [&](const batch_delivered& what) { on_batch_delivered(source, what); },
                 [&](const callback_ended& what) { on_callback_ended(source, what); },
                 [&](const checkpoint_requested& what) { on_checkpoint_requested(source, what); },
                 [&](const checkpoint_answered& what) { on_checkpoint_answered(source, what); },
                 [&](const session_ended& what) { on_session_ended(source, what); },
                 [&](const record_attempted& what) { on_record_attempted(source, what); },
                 [&](const record_retried& what) { on_record_retried(source, what); },
                 [&](const record_parked& what) { on_record_parked(source, what); },
                 [&](const record_skipped& what) { on_record_skipped(source, what); },
                 [&](const circuit_changed& what) { on_circuit_changed(source, what); },
                 [&](const window_changed& what) { on_window_changed(source, what); },
                 [&](const handlers_stuck& what) { on_handlers_stuck(source, what); },
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
