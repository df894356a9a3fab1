// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <kclxx/export.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/run_options.hpp>

namespace kclxx {

/// How a child process ends; `run` returns the value as an int. docs/protocol.md lists them too.
enum class exit_status : int {
  ok = 0,                 ///< the daemon closed the input while nothing was to be done
  callback_failed = 10,   ///< a callback or the factory threw
  protocol_error = 11,    ///< a line from the daemon that cannot be understood or is out of place
  daemon_gone = 12,       ///< the input ended, or the output broke, in the middle of an action
  callback_stuck = 13,    ///< a callback, or a destructor, did not end within the grace time
  shard_end_failed = 14,  ///< the end of the shard could not be checkpointed
  start_failed = 15,      ///< the process could not be set up (descriptors, threads, memory)
};

/// Serves the daemon on stdin and stdout until it closes the input, and returns the exit status
/// for main to return.
///
/// While it runs, and afterwards, file descriptor 1 leads to stderr and 0 to /dev/null: the
/// dialogue has private descriptors that programs started by a callback do not inherit. SIGINT,
/// SIGTERM, SIGHUP and SIGPIPE do nothing, since the daemon decides when a child ends, unless
/// stdin is a terminal or the program has set handlers of its own. May be called once in a process.
/// Errors: none thrown; see exit_status. Each failure is one line in the log.
/// Blocking: yes. A callback that ignores the end of the input for run_options::grace_time ends
/// the process with std::_Exit.
[[nodiscard]] KCLXX_EXPORT int run(processor_factory make_processor,
                                   const run_options& options = {});

/// The shortest form: a function that gets each batch. All that it returned from is checkpointed.
[[nodiscard]] KCLXX_EXPORT int run(std::function<void(record_batch)> process_records,
                                   const run_options& options = {});

}  // namespace kclxx
