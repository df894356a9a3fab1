// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <concepts>
#include <optional>
#include <string>

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
/// ignores SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE and SIGXFSZ, also afterwards, since the daemon
/// decides when a child ends. It leaves a signal alone if the program has a handler for it, and
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

/// Serves the daemon with processors of this type, whose constructor takes `const shard_context&`,
/// or nothing.
template <std::derived_from<record_processor> Processor>
[[nodiscard]] int run(const run_options& options = {}) {
  return run(factory_of<Processor>(), options);
}

/// A connection to the daemon for one shard, and the names that `run` takes from the environment.
/// Thread safety: a value. Sessions at the same time may share `log`, but not `input` and `output`.
/// Lifetime: it closes nothing.
struct transport {
  int input;   ///< a descriptor with the daemon's lines: a pipe, a socket, a file
  int output;  ///< a descriptor for the child's lines
  /// In place of stderr, for log lines and for CloudWatch's lines.
  int log = 2;
  /// For shard_context::stream_name.
  std::optional<std::string> stream_name{};
  /// For shard_context::application_name.
  std::optional<std::string> application_name{};
  /// For shard_context::worker_id.
  std::optional<std::string> worker_id{};
};

/// Serves one shard over a transport: what `run` does, without setting up the process. It may be
/// called many times in a process, and from many threads at the same time: one session per call,
/// each with threads of its own.
///
/// The caller must ignore or handle SIGPIPE, and must not use `input` and `output` until this
/// returns. They stay open.
/// Errors: as `run`.
/// Blocking: as `run`, but serve() never ends the process. Callbacks run on a thread of the
/// session. If one ignores the stop token, serve() returns exit_status::callback_stuck: the
/// callback keeps the thread and the processor, but not the descriptors. Other sessions continue.
[[nodiscard]] KCLXX_EXPORT exit_status serve(const transport& connection,
                                             processor_factory make_processor,
                                             const run_options& options = {});

}  // namespace kclxx
