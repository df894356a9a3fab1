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

/// Serves a shard.
/// Thread safety: end_input() may be called from any thread.
class shard_session {
 public:
  shard_session() = default;
  shard_session(const shard_session&) = delete;
  shard_session& operator=(const shard_session&) = delete;
  virtual ~shard_session() = default;

  /// Serves the shard to its end. Called once, on a thread of the session's. After it has returned,
  /// the session does not use the descriptors. Throws nothing.
  virtual exit_status serve() = 0;
  /// From now on nothing of the session runs on the loop. Called last, on the loop's thread, when
  /// the session has served the shard, or is stuck.
  virtual void leave_loop() = 0;
  /// Ends the session as the end of the input does: nobody reads or writes at the daemon's side any
  /// longer.
  virtual void end_input() = 0;
};

/// Makes the session of a shard. It uses `loop` for its timers and its input. When its thread does
/// not return from user code, the session stops using the descriptors, and then calls `on_stuck`,
/// on any thread. `on_stuck` refers to the session: serve() does not return while it runs, and it
/// is not called after serve() has returned. Errors: std::exception; the launcher then executes the
/// program itself.
using session_maker = std::function<std::shared_ptr<shard_session>(
    const handed_shard&, io::event_loop& loop, std::function<void()> on_stuck)>;

/// Serves the shards that launchers hand over, until the daemon and all sessions have ended. After
/// that, threads of sessions have `grace_time` to end the destructors of thread_local objects.
/// Returns callback_stuck when a thread was abandoned, else ok.
/// Errors: std::exception before a shard was accepted.
exit_status serve_shards(inheritance start, const session_maker& make_session,
                         std::chrono::milliseconds grace_time);

}  // namespace kclxx::sharing
