// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <kclxx/run.hpp>
#include <kclxx/serve.hpp>

#include "base/duration.hpp"
#include "base/environment.hpp"
#include "io/daemon_process.hpp"
#include "io/signals.hpp"
#include "io/stdio_guard.hpp"
#include "observability/log_writer.hpp"
#include "observability/observation.hpp"
#include "runtime/logger.hpp"
#include "runtime/shard_runtime.hpp"
#include "sharing/resident.hpp"

namespace kclxx {

namespace {

void log(const run_options& options, log_level level, const std::string& text) {
  const log_entry entry{level, {}, text};
  try {
    if (options.log) return options.log(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): it goes to stderr, as without a function
  }
  runtime::log_now(STDERR_FILENO, entry);
}

void log_failure(const run_options& options, const std::exception& error) noexcept {
  try {
    log(options, log_level::error, runtime::cannot_serve(error.what()));
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a line
  }
}

using runtime::shard_runtime;

/// The three names, from there.
shard_context::fields names_in(const detail::environment& variables) {
  return {.stream_name = variables("KCLXX_STREAM_NAME"),
          .application_name = variables("KCLXX_APPLICATION_NAME"),
          .worker_id = variables("KCLXX_WORKER_ID")};
}

std::optional<io::process_identity> daemon_in(const detail::environment& variables,
                                              const io::process_identity& parent) {
  return io::daemon_process(variables(io::daemon_variable), parent);
}

/// The parent, if it may be a daemon: who writes to the input lives, and has started this process.
io::process_identity parent_daemon(const io::stdio_guard& stdio) {
  if (stdio.input_is_file() || stdio.input_is_terminal()) return {};
  const io::process_identity parent = io::parent_process();
  pollfd input{stdio.input(), 0, 0};
  return ::poll(&input, 1, 0) == 0 ? parent : io::process_identity{};
}

/// With the variables' settings of log and metrics. Errors: std::exception.
std::shared_ptr<shard_runtime> make_runtime(const shard_runtime::configuration& with,
                                            const processor_factory& make_processor,
                                            run_options options,
                                            const detail::environment& variables,
                                            std::function<void()> on_stuck = {}) {
  std::vector<std::string> problems;
  options.logging = observability::with_environment(options.logging, variables, problems);
  options.metrics = observability::with_environment(options.metrics, variables, problems);
  auto made = std::make_shared<shard_runtime>(with, make_processor, options, std::move(on_stuck));
  made->dialogue().start_observation();
  for (const std::string& problem : problems) made->dialogue().log(log_level::warning, problem, {});
  return made;
}

exit_status serve(const shard_runtime::configuration& with, const processor_factory& make_processor,
                  const run_options& options) {
  try {
    return make_runtime(with, make_processor, options, detail::own_environment)->serve();
  } catch (const std::exception& error) {
    log_failure(options, error);
    return exit_status::start_failed;
  }
}

template <class Result, class... Arguments>
void share(std::function<Result(Arguments...)>& function) {
  if (!function) return;
  auto shared = std::make_shared<std::function<Result(Arguments...)>>(std::move(function));
  function = [shared = std::move(shared)](Arguments... arguments) {
    return (*shared)(std::forward<Arguments>(arguments)...);
  };
}

/// Copies of the options have the user's functions in common: to copy or destroy one runs none of
/// the user's code, which the loop of all shards would wait for.
run_options with_shared_functions(run_options options) {
  share(options.log);
  share(options.metrics.own_families);
  return options;
}

/// A shard that kclxx-share has handed over.
class handed_session final : public sharing::shard_session {
 public:
  handed_session(const sharing::handed_shard& shard, io::event_loop& loop,
                 std::function<void()> on_stuck, const processor_factory& make_processor,
                 const run_options& options)
      : runtime_(make_runtime(configuration(shard, loop), make_processor, options,
                              variables_of(shard), std::move(on_stuck))),
        options_(options) {}

  exit_status serve() override {
    try {
      return runtime_->serve();
    } catch (const std::exception& error) {
      log_failure(options_, error);
      return exit_status::start_failed;
    }
  }
  void leave_loop() override { runtime_->dialogue().leave_loop(); }
  void end_input() override { runtime_->dialogue().end_input(); }

 private:
  static detail::environment variables_of(const sharing::handed_shard& shard) {
    return [&shard](const char* name) { return shard.variable(name); };
  }
  static shard_runtime::configuration configuration(const sharing::handed_shard& shard,
                                                    io::event_loop& loop) {
    io::enlarge_pipe(shard.input.get());
    return {.input = shard.input.get(),
            .output = shard.output.get(),
            .log = shard.error.get(),
            .input_is_file = io::is_file(shard.input.get()),
            .names = names_in(variables_of(shard)),
            .daemon = daemon_in(variables_of(shard), shard.daemon),
            .loop = &loop};
  }

  std::shared_ptr<shard_runtime> runtime_;
  const run_options& options_;
};

/// As the process of all shards that its launchers hand over.
exit_status serve_shards(sharing::inheritance start, const processor_factory& make_processor,
                         const run_options& with) {
  const run_options options = with_shared_functions(with);
  if (!options.share_process) {
    sharing::refuse_shards(start, "run_options::share_process is false");
    return exit_status::ok;
  }
  io::outlive_signals();
  const exit_status status = sharing::serve_shards(
      std::move(start),
      [&](const sharing::handed_shard& shard, io::event_loop& loop,
          std::function<void()> on_stuck) {
        return std::make_unique<handed_session>(shard, loop, std::move(on_stuck), make_processor,
                                                options);
      },
      detail::clamped(options.grace_time));
  // A thread that was abandoned uses what the end of main destroys.
  if (status != exit_status::ok) std::_Exit(static_cast<int>(status));
  return status;
}

}  // namespace

exit_status serve(const transport& over, processor_factory make_processor,
                  const run_options& options) {
  shard_context::fields names{.stream_name = over.stream_name,
                              .application_name = over.application_name,
                              .worker_id = over.worker_id};
  return serve({.input = over.input,
                .output = over.output,
                .log = over.log,
                .input_is_file = io::is_file(over.input),
                .names = std::move(names)},
               make_processor, options);
}

int run(processor_factory make_processor, const run_options& options) {
  static std::atomic<bool> has_run = false;
  std::optional<io::stdio_guard> stdio;
  try {
    if (has_run.exchange(true)) throw std::logic_error("run was called a second time");
    if (auto start = sharing::inherited()) {
      return static_cast<int>(serve_shards(std::move(*start), make_processor, options));
    }
    stdio.emplace();
    if (stdio->input_is_terminal()) {
      log(options, log_level::info, "stdin is a terminal: type a daemon's lines; Ctrl-D ends it");
    } else {
      io::outlive_signals();
    }
  } catch (const std::exception& error) {
    log_failure(options, error);
    return static_cast<int>(exit_status::start_failed);
  }
  return static_cast<int>(
      serve({.input = stdio->input(),
             .output = stdio->output(),
             .log = STDERR_FILENO,
             .input_is_file = stdio->input_is_file(),
             .names = names_in(detail::own_environment),
             .daemon = daemon_in(detail::own_environment, parent_daemon(*stdio)),
             .leave_process = [](exit_status status) { std::_Exit(static_cast<int>(status)); }},
            make_processor, options));
}

}  // namespace kclxx
