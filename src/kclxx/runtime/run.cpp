// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <kclxx/run.hpp>

#include "base/duration.hpp"
#include "base/environment.hpp"
#include "io/process_identity.hpp"
#include "io/signals.hpp"
#include "io/stdio_guard.hpp"
#include "runtime/log_thread.hpp"
#include "runtime/shard_host_threads.hpp"
#include "sharing/inheritance.hpp"
#include "sharing/resident.hpp"

namespace kclxx::runtime {

namespace {

/// A shard that kclxx-share has handed over.
class handed_session final : public sharing::shard_session {
 public:
  handed_session(const sharing::handed_shard& shard, io::event_loop& loop,
                 std::function<void()> on_stuck, const processor_factory& make_processor,
                 const run_options& options)
      : threads_(make_host_threads(configuration(shard, loop), make_processor, options,
                                   variables_of(shard), std::move(on_stuck))),
        options_(options) {}

  exit_status serve() override {
    try {
      return threads_->serve();
    } catch (const std::exception& error) {
      log_failure(options_, error);
      return exit_status::start_failed;
    }
  }
  void leave_loop() override { threads_->host().leave_loop(); }
  void end_input() override { threads_->host().end_input(); }

 private:
  static detail::environment variables_of(const sharing::handed_shard& shard) {
    return [&shard](const char* name) { return shard.variable(name); };
  }
  static shard_host_threads::configuration configuration(const sharing::handed_shard& shard,
                                                         io::event_loop& loop) {
    io::enlarge_pipe(shard.input.get());
    return {.input = shard.input.get(),
            .output = shard.output.get(),
            .log = shard.error.get(),
            .names = names_in(variables_of(shard)),
            .daemon = daemon_in(variables_of(shard), shard.daemon),
            .shared_loop = &loop};
  }

  std::shared_ptr<shard_host_threads> threads_;
  const run_options& options_;
};

template <class Result, class... Arguments>
void share(std::function<Result(Arguments...)>& function) {
  if (!function) return;
  auto shared = std::make_shared<std::function<Result(Arguments...)>>(std::move(function));
  function = [shared = std::move(shared)](Arguments... arguments) {
    return (*shared)(std::forward<Arguments>(arguments)...);
  };
}

/// Options whose copies share the user's functions. So a copy is made and destroyed without user
/// code, for which the loop of all shards would wait.
run_options with_shared_functions(run_options options) {
  share(options.log);
  share(options.metrics.own_metrics);
  return options;
}

/// Serves all shards that launchers hand over to this process.
/// Errors: std::exception, before the first shard is accepted.
exit_status run_resident(sharing::inheritance start, const processor_factory& make_processor,
                         const run_options& options) {
  io::outlive_signals();
  const run_options shared_options = with_shared_functions(options);
  const exit_status status = sharing::serve_shards(
      std::move(start),
      [&](const sharing::handed_shard& shard, io::event_loop& loop,
          std::function<void()> on_stuck) {
        return std::make_unique<handed_session>(shard, loop, std::move(on_stuck), make_processor,
                                                shared_options);
      },
      std::max(detail::clamped(options.grace_time), least_teardown));
  // A thread that was abandoned may use objects that the end of main destroys.
  if (status != exit_status::ok) std::_Exit(static_cast<int>(status));
  return status;
}

}  // namespace

}  // namespace kclxx::runtime

namespace kclxx {

namespace {

using runtime::shard_host_threads;

/// The parent process, if it may be the daemon. It is not when the writer of the input has hung up.
io::process_identity parent_daemon(const io::stdio_guard& stdio) {
  if (io::is_file(stdio.input()) || stdio.input_is_terminal()) return {};
  const io::process_identity parent = io::parent_process();
  pollfd input{stdio.input(), 0, 0};
  return ::poll(&input, 1, 0) == 0 ? parent : io::process_identity{};
}

exit_status serve(const shard_host_threads::configuration& configuration,
                  const processor_factory& make_processor, const run_options& options) {
  try {
    make_processor.require_valid();
    return runtime::make_host_threads(configuration, make_processor, options,
                                      detail::own_environment)
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
    make_processor.require_valid();
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
