// SPDX-License-Identifier: Apache-2.0
// The interface that receives what happens in a session.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <cstdint>

#include <kclxx/export.hpp>
#include <kclxx/shard_event.hpp>  // IWYU pragma: export

namespace kclxx {

/// Receives what happens: derive from it, override what matters, and put it into
/// run_options::observers.
///
/// The dialogue does not wait for observers, and their exceptions do not reach it. Under `run` and
/// `serve` events are delivered within 0.1 s, on a thread of the session, without a lock held.
/// While an observer blocks, up to 65,536 events wait. Further events are dropped, and
/// on_events_dropped receives their number. At the end of the session the waiting events are
/// delivered, for at most 0.2 s. The test kit calls observers on the test's thread, in virtual
/// time.
///
/// Errors: the first exception that any observer throws in a session is logged. Later exceptions of
/// all observers of that session are ignored.
/// Thread safety: one session makes one call at a time, in the order of the events. An observer of
/// several sessions (see `serve`) is called by them at the same time.
/// Lifetime: the references are valid during the call. Sessions share ownership of the observer.
/// Blocking: it may block.
class KCLXX_EXPORT observer {
 public:
  observer() = default;
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  virtual ~observer();

  /// Receives every event, and calls the function below that is for it.
  virtual void on_event(const event_source& source, const shard_event& event);

  virtual void on_lease_gained(const event_source& source, const lease_gained& event);
  virtual void on_lease_ended(const event_source& source, const lease_ended& event);
  virtual void on_batch_delivered(const event_source& source, const batch_delivered& event);
  virtual void on_callback_ended(const event_source& source, const callback_ended& event);
  virtual void on_checkpoint_requested(const event_source& source,
                                       const checkpoint_requested& event);
  virtual void on_checkpoint_answered(const event_source& source, const checkpoint_answered& event);
  virtual void on_session_ended(const event_source& source, const session_ended& event);
  virtual void on_record_attempted(const event_source& source, const record_attempted& event);
  virtual void on_record_retried(const event_source& source, const record_retried& event);
  virtual void on_record_parked(const event_source& source, const record_parked& event);
  virtual void on_record_skipped(const event_source& source, const record_skipped& event);
  virtual void on_circuit_changed(const event_source& source, const circuit_changed& event);
  virtual void on_window_changed(const event_source& source, const window_changed& event);
  virtual void on_handlers_stuck(const event_source& source, const handlers_stuck& event);

  /// `count` events were dropped since the last call of this function, because this observer or
  /// another one of the session was too slow.
  virtual void on_events_dropped(const event_source& source, std::uint64_t count);
};

}  // namespace kclxx
