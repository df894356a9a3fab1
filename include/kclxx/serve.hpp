// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <optional>
#include <string>

#include <kclxx/detail/export.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>

namespace kclxx {

/// A connection to the daemon for one shard, and the names that `run` takes from the environment.
/// Thread safety: a value. Sessions at the same time may share `log`, but not `input` and `output`.
/// Lifetime: it closes nothing.
struct transport {
  int input;   ///< a descriptor with the daemon's lines: a pipe, a socket, a file
  int output;  ///< a descriptor for the child's lines
  /// In place of stderr, for log lines and for CloudWatch's lines.
  int log = 2;
  std::optional<std::string> stream_name{};
  std::optional<std::string> application_name{};
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
