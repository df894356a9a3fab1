// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract, and for when an action of the daemon is open.
#pragma once

namespace kclxx {

/// How a child process ends; `run` returns the value as an int. The daemon logs it as "Child
/// process exited with value: 10". Without memory or threads, and when kclxx detects a bug in
/// itself, the process aborts (SIGABRT); stderr has the reason. The daemon delivers the records
/// again.
enum class exit_status : int {
  ok = 0,  ///< the daemon closed the input while no action was open; nothing needs to be done
  /// A callback, a timer, a checkpoint handler or the factory threw, or shard_context::fail was
  /// called; or records still arrived five minutes after an exception for a lost lease. The log has
  /// the message. The daemon ends the whole worker, so catch what can be handled.
  callback_failed = 10,
  /// A line from the daemon is malformed or out of order; the log describes it. Check that only the
  /// daemon writes to the child's stdin, or install a newer kclxx.
  protocol_error = 11,
  /// The input ended in the middle of an action or a line, or a pipe broke: the daemon died or
  /// halted. Its log has the reason.
  daemon_gone = 12,
  /// The session had to end, and user code did not end within run_options::grace_time. Check
  /// shard_context::stop_token() in long callbacks.
  callback_stuck = 13,
  /// The end of the shard was not checkpointed: each attempt failed, or an exception for a lost
  /// lease was thrown before it. See the lease table and the daemon's log.
  shard_end_failed = 14,
  /// The process could not be set up, or `run` was called twice: mend what the log names.
  start_failed = 15,
  /// The process that serves all shards under kclxx-share has ended. Look for a crash or OOM kill.
  resident_gone = 17,
};

}  // namespace kclxx
