// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <concepts>

#include <kclxx/detail/export.hpp>
#include <kclxx/exit_status.hpp>  // IWYU pragma: export
#include <kclxx/processor_factory.hpp>
#include <kclxx/run_options.hpp>

namespace kclxx {

/// Serves the daemon on stdin and stdout until the daemon closes the input. Returns the exit status
/// for main to return.
///
/// While it runs, and afterwards, file descriptor 1 leads to stderr and 0 to /dev/null: the
/// dialogue has private descriptors that programs started by a callback do not inherit. run()
/// ignores SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, also afterwards, since the daemon decides
/// when a child ends. It leaves a signal alone if the program has a handler for it, and
/// changes no signal if stdin is a terminal. May be called once in a process; `serve` may be called
/// many times. In a process that kclxx-share has started, run() serves all shards of the daemon
/// (docs/sharing.md).
/// Errors: none thrown; see exit_status. Each failure is one line in the log; a log that
/// nobody reads can lose it (shard_context::log).
/// Blocking: until the daemon ends the dialogue. If a callback ignores the stop token, the process
/// ends with std::_Exit, at most run_options::grace_time plus one second after the end of the
/// input. A process that kclxx-share has started abandons the callbacks' thread instead, and
/// continues. The end of a plain file on stdin does not interrupt a callback.
[[nodiscard]] KCLXX_EXPORT int run(processor_factory make_processor,
                                   const run_options& options = {});

/// The same for a processor whose constructor takes `const shard_context&`, or nothing.
template <std::derived_from<record_processor> Processor>
[[nodiscard]] int run(const run_options& options = {}) {
  return run(factory_of<Processor>(), options);
}

}  // namespace kclxx
