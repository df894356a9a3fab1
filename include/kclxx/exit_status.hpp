// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx {

/// How a child process ends; `run` returns the value as an int. The daemon logs it as "Child
/// process exited with value: 10".
enum class exit_status : int {
  /// The daemon closed the input while no action was open.
  ok = 0,
  /// A callback, a timer, a checkpoint handler or the factory threw; or records still
  /// arrived five minutes after a processor threw fenced_error. The log has the message. The daemon
  /// ends the whole worker, so catch what can be handled.
  callback_failed = 10,
  /// A line from the daemon is malformed or out of order. The log shows its beginning and the
  /// field.
  protocol_error = 11,
  /// The input ended in the middle of an action or a line, or a pipe broke. Look at the daemon's
  /// log.
  daemon_gone = 12,
  /// The session had to end, and a callback or a destructor did not end within the grace time.
  /// Check shard_context::stop_token() in long callbacks.
  callback_stuck = 13,
  /// The end of the shard could not be checkpointed. Look at the lease table and the daemon's log.
  shard_end_failed = 14,
  /// The process could not be set up, or `run` was called twice. The log names the step.
  start_failed = 15,
  /// Memory, or another resource, was exhausted while it ran: give the process more, or lower the
  /// daemon's maxRecords. Or kclxx detected a bug in itself, which the log names: report it.
  resource_failure = 16,
  /// With kclxx-share: the process of the shard ended before the shard did. Look for a crash, or
  /// the OOM killer (docs/sharing.md).
  resident_gone = 17,
};

}  // namespace kclxx
