// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <exception>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <kclxx/run.hpp>
#include <kclxx/serve.hpp>

#include "base/environment.hpp"
#include "io/daemon_process.hpp"
#include "io/outlive_signals.hpp"
#include "io/stdio_guard.hpp"
#include "runtime/logger.hpp"
#include "runtime/resident_shards.hpp"
#include "runtime/shard_runtime.hpp"
#include "runtime/variables.hpp"
#include "sharing/inheritance.hpp"

namespace kclxx {

namespace {

using runtime::shard_runtime;

/// The parent, if it may be a daemon: who writes to the input lives, and has started this process.
io::process_identity parent_daemon(const io::stdio_guard& stdio) {
  if (io::is_file(stdio.input()) || stdio.input_is_terminal()) return {};
  const io::process_identity parent = io::parent_process();
  pollfd input{stdio.input(), 0, 0};
  return ::poll(&input, 1, 0) == 0 ? parent : io::process_identity{};
}

exit_status serve(const shard_runtime::configuration& configuration,
                  const processor_factory& make_processor, const run_options& options) {
  try {
    return runtime::make_runtime(configuration, make_processor, options, detail::own_environment)
        ->serve();
  } catch (const std::exception& error) {
    runtime::log_failure(options, error);
    return exit_status::start_failed;
  }
}

}  // namespace

exit_status serve(const transport& connection, processor_factory make_processor,
                  const run_options& options) {
  shard_context::fields names{.stream_name = connection.stream_name,
                              .application_name = connection.application_name,
                              .worker_id = connection.worker_id};
  return serve({.input = connection.input,
                .output = connection.output,
                .log = connection.log,
                .names = std::move(names)},
               make_processor, options);
}

int run(processor_factory make_processor, const run_options& options) {
  static std::atomic<bool> has_run = false;
  std::optional<io::stdio_guard> stdio;
  try {
    if (has_run.exchange(true)) throw std::logic_error("run was called a second time");
    if (auto start = sharing::inherited()) {
      return static_cast<int>(runtime::run_resident(std::move(*start), make_processor, options));
    }
    stdio.emplace();
    if (stdio->input_is_terminal()) {
      runtime::log(options, log_level::info,
                   "stdin is a terminal: type a daemon's lines; Ctrl-D ends it");
    } else {
      io::outlive_signals();
    }
  } catch (const std::exception& error) {
    runtime::log_failure(options, error);
    return static_cast<int>(exit_status::start_failed);
  }
  return static_cast<int>(
      serve({.input = stdio->input(),
             .output = stdio->output(),
             .log = STDERR_FILENO,
             .names = runtime::names_in(detail::own_environment),
             .daemon = runtime::daemon_in(detail::own_environment, parent_daemon(*stdio)),
             .leave_process = [](exit_status status) { std::_Exit(static_cast<int>(status)); }},
            make_processor, options));
}

}  // namespace kclxx
