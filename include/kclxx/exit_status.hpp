// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx {

/// How a child process ends; `run` returns the value as an int. README: what to do about each.
enum class exit_status : int {
  ok = 0,                 ///< the daemon closed the input while no action was open
  callback_failed = 10,   ///< a callback, a timer, a checkpoint handler or the factory threw
  protocol_error = 11,    ///< a line from the daemon is malformed or out of order
  daemon_gone = 12,       ///< the input ended in the middle of an action or a line, or a pipe broke
  callback_stuck = 13,    ///< a callback, or a destructor, did not end within the grace time
  shard_end_failed = 14,  ///< the end of the shard could not be checkpointed
  start_failed = 15,      ///< the process could not be set up, or `run` was called twice
  resource_failure = 16,  ///< a resource was exhausted, or kclxx detected a bug in itself
  resident_gone = 17,     ///< kclxx-share: the process of the shard ended before the shard did
};

}  // namespace kclxx
