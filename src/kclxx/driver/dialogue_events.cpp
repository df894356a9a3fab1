// SPDX-License-Identifier: Apache-2.0
#include "driver/dialogue_events.hpp"

#include <utility>

#include "driver/session_driver.hpp"

namespace kclxx::driver {

namespace {

observer::batch_delivered described(const record_batch& batch) {
  observer::batch_delivered event{.records = batch.size(),
                                  .millis_behind_latest = batch.millis_behind_latest()};
  for (const record& delivered : batch) event.bytes += delivered.data().size();
  if (!batch.empty()) {
    event.first = batch.front().position();
    event.last = batch.back().position();
    event.last_arrival = batch.back().approximate_arrival_timestamp();
  }
  return event;
}

}  // namespace

std::optional<observer::shard_event> dialogue_events::event_of(const session::call& call) const {
  if (!host_.is_observed()) return std::nullopt;
  switch (call.kind) {
    case observer::callback_kind::initialize:
      return observer::lease_gained{call.start_position};
    case observer::callback_kind::process_records:
      return described(call.batch);
    case observer::callback_kind::lease_lost:
      return observer::lease_ended{observer::lease_ended::reason::lost};
    default:
      return std::nullopt;
  }
}

void dialogue_events::on_call(std::optional<observer::shard_event> event,
                              observer::callback_kind kind) {
  open_ = kind;
  if (event) host_.observe(*std::move(event));
}

void dialogue_events::on_callback_ended(std::chrono::nanoseconds duration,
                                        observer::callback_ended::outcome outcome,
                                        std::string error) {
  host_.observe(observer::callback_ended{*open_, duration, outcome, std::move(error)});
}

void dialogue_events::on_status(const std::optional<session::action_kind>& kind,
                                const session::session& session) {
  const auto called = std::exchange(open_, std::nullopt);
  if (!host_.is_observed()) return;
  using reason = observer::lease_ended::reason;
  if (kind == observer::callback_kind::shard_ended) {
    // Without the end persisted a status follows only when the lease is lost (P50, P51).
    host_.observe(
        observer::lease_ended{session.is_shard_finished() ? reason::shard_finished : reason::lost});
  } else if (kind == observer::callback_kind::lease_lost && !called) {  // else on_call has sent it
    host_.observe(observer::lease_ended{reason::lost});
  }
}

void dialogue_events::on_checkpoint(const sequence_position& position, session::session& session) {
  if (!host_.is_observed()) return;
  send_answer(session);
  unanswered_ = request{position, host_.now()};
  host_.observe(observer::checkpoint_requested{position});
}

void dialogue_events::settle(session::session& session) {
  if (unanswered_ && (session.has_answer() || !session.unanswered())) send_answer(session);
}

void dialogue_events::send_answer(session::session& session) {
  const auto asked = std::exchange(unanswered_, std::nullopt);
  if (!asked) return;
  const auto answer = session.take_answer();
  host_.observe(
      observer::checkpoint_answered{asked->position, host_.now() - asked->time,
                                    answer ? answer->error.value_or("") : "not answered"});
}

void dialogue_events::on_left(exit_status status, session::session& session) {
  if (!host_.is_observed()) return;
  send_answer(session);
  host_.observe(observer::session_ended{status});
}

}  // namespace kclxx::driver
