// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <kclxx/exit_status.hpp>

#include "sharing/handed_shard.hpp"
#include "sharing/resident_start.hpp"

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

/// The session does on `loop` what does not belong to its thread. It calls `on_stuck` there when
/// its thread does not return from user code, once it has left the descriptors alone for good.
/// Errors: std::exception; then the launcher executes the program itself.
using session_maker = std::function<std::unique_ptr<shard_session>(
    const handed_shard&, io::event_loop& loop, std::function<void()> on_stuck)>;

/// Serves the shards that launchers hand over, until the daemon has ended and all sessions have.
/// Returns callback_stuck when the thread of one was abandoned, else ok.
/// Errors: std::exception before anything was accepted.
exit_status serve_shards(resident_start start, const session_maker& make_session);

/// Does not: the launchers execute the program themselves.
void refuse_shards(const resident_start& start, const std::string& reason) noexcept;

}  // namespace kclxx::sharing
