// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <kclxx/exit_status.hpp>

#include "sharing/handed_shard.hpp"
#include "sharing/inheritance.hpp"

namespace kclxx::io {
struct event_loop;
}

namespace kclxx::sharing {

/// What serves a shard.
/// Thread safety: end_input() from any thread.
class shard_session {
 public:
  shard_session() = default;
  shard_session(const shard_session&) = delete;
  shard_session& operator=(const shard_session&) = delete;
  virtual ~shard_session() = default;

  /// To its end; called once, on a thread of the session's. It is through with the descriptors when
  /// it returns. Errors: none thrown.
  virtual exit_status serve() = 0;
  /// On the loop's thread, as the last: it is served, or stuck. Nothing of it runs there any more.
  virtual void leave_loop() = 0;
  /// Nobody reads or writes at the other side any more: as at the end of the input.
  virtual void end_input() = 0;
};

/// The session does on `loop` what does not belong to its thread. It calls `on_stuck`, on any
/// thread, when its own does not return from user code, once it has left the descriptors alone for
/// good. `on_stuck` refers to the session: serve() does not return while it runs, and it is not
/// called after that.
/// Errors: std::exception; then the launcher executes the program itself.
using session_maker = std::function<std::unique_ptr<shard_session>(
    const handed_shard&, io::event_loop& loop, std::function<void()> on_stuck)>;

/// Serves the shards that launchers hand over, until the daemon has ended and all sessions have.
/// Then threads of sessions that still run the destructors of thread_local objects have
/// `grace_time`. Returns callback_stuck when a thread was abandoned, else ok.
/// Errors: std::exception before anything was accepted.
exit_status serve_shards(inheritance start, const session_maker& make_session,
                         std::chrono::milliseconds grace_time);

}  // namespace kclxx::sharing
