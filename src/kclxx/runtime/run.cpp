// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <kclxx/run.hpp>

#include "base/duration.hpp"
#include "base/environment.hpp"
#include "base/printable.hpp"
#include "io/lines.hpp"
#include "io/process_identity.hpp"
#include "io/signals.hpp"
#include "io/stdio_guard.hpp"
#include "observability/log_writer.hpp"
#include "observability/observation.hpp"
#include "runtime/shard_host.hpp"
#include "sharing/inheritance.hpp"
#include "sharing/resident.hpp"

namespace kclxx::runtime {

namespace {

/// The event loop ends at once, unless user code has closed its descriptors.
constexpr std::chrono::milliseconds last_of_loop{1000};

/// Serves a session: gives its shard_host the threads, and ends them.
///
/// Thread safety: all functions from any thread, except where stated.
class shard_host_threads final : public sharing::shard_session,
                                 public std::enable_shared_from_this<shard_host_threads> {
 public:
  using configuration = shard_host::configuration;

  /// `on_stuck`: with a shared loop it is called on any thread when user code does not return, so
  /// that serve() does not return either. The session does not use its descriptors any more. If
  /// user code returns after that, serve() returns callback_stuck as soon as `on_stuck` has
  /// returned.
  /// Errors: std::exception when a descriptor or a thread cannot be had.
  shard_host_threads(const configuration& settings, processor_factory make_processor,
                     const run_options& options, std::function<void()> on_stuck = {})
      : settings_(settings),
        on_stuck_(std::move(on_stuck)),
        host_(std::make_shared<shard_host>(
            settings, [this](const char* reason) { leave_stuck(reason); },
            std::move(make_processor), options)) {}

  [[nodiscard]] shard_host& host() noexcept { return *host_; }
  /// Runs the session to its end. Call it once.
  ///
  /// with           callbacks     event loop         user code that does not return
  /// shared_loop    this thread   the caller's loop  on_stuck is called; serve() does not return
  /// leave_process  this thread   a new thread       leave_process is called
  /// neither        a new thread  a new thread       serve() returns; the callbacks' thread stays
  /// Errors: std::system_error when a thread cannot be had; with shared_loop none.
  exit_status serve() override {
    if (settings_.shared_loop == nullptr) return serve_with_own_loop();
    run_callbacks();
    std::unique_lock lock(mutex_);
    // User code may have returned while the session leaves as stuck.
    changed_.wait(lock, [this] { return life_ != life::leaving_stuck; });
    if (life_ == life::stuck) return exit_status::callback_stuck;
    lock.unlock();
    host_->drain_lines();
    host_->abandon_lines();
    return *host_->status();
  }
  void leave_loop() override { host_->leave_loop(); }
  void end_input() override { host_->end_input(); }

 private:
  enum class life { serving, finished, leaving_stuck, stuck };

  exit_status serve_with_own_loop() {
    std::thread loop;
    {
      const io::signal_block block;
      loop = std::thread([self = shared_from_this()] { self->run_loop(); });
    }
    // The loop ends on every way out of this function, also by an exception.
    const auto end_the_loop = [this](std::thread* thread) { end_loop(*thread); };
    const std::unique_ptr<std::thread, decltype(end_the_loop)> ended(&loop, end_the_loop);
    if (settings_.leave_process) {
      run_callbacks();
      return *host_->status();
    }
    // The caller's thread must return even if user code does not, so callbacks get a thread.
    std::thread callbacks([self = shared_from_this()] { self->run_callbacks(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return life_ == life::finished || life_ == life::stuck; });
    const bool is_stuck = life_ == life::stuck;
    lock.unlock();
    is_stuck ? callbacks.detach() : callbacks.join();
    return is_stuck ? exit_status::callback_stuck : *host_->status();
  }

  void run_callbacks() {
    host_->run();
    const std::lock_guard lock(mutex_);
    if (life_ == life::serving) life_ = life::finished;
    changed_.notify_all();
  }

  void run_loop() {
    host_->run_loop();
    const std::lock_guard lock(mutex_);
    has_loop_ended_ = true;
    changed_.notify_all();
  }

  void end_loop(std::thread& thread) {
    host_->stop_loop();
    std::unique_lock lock(mutex_);
    const bool has_ended =
        changed_.wait_for(lock, last_of_loop, [this] { return has_loop_ended_; });
    lock.unlock();
    if (has_ended) {
      thread.join();
      // A stuck callback keeps the host alive after the caller has closed the input, so the loop
      // leaves the input now.
      host_->leave_loop();
    } else {
      thread.detach();
      const auto status = host_->status().value_or(exit_status::callback_stuck);
      if (settings_.leave_process) settings_.leave_process(status);
    }
    const bool is_drained = host_->drain_lines();
    // The owner of the descriptor may close it as soon as serve() returns.
    if (!is_drained || !settings_.leave_process) host_->abandon_lines();
  }

  /// User code cannot be ended. The session waits for what user code has logged, but not on the
  /// loop that all sessions share. The callbacks' thread may return at the same time: the first of
  /// the two that changes life_ decides how the session ends.
  void leave_stuck(const char* reason) {
    {
      const std::lock_guard lock(mutex_);
      if (life_ != life::serving) return;
      life_ = life::leaving_stuck;
    }
    if (settings_.shared_loop == nullptr) return finish_stuck(reason);
    const io::signal_block block;
    std::thread([self = shared_from_this(), reason] { self->finish_stuck(reason); }).detach();
  }

  void finish_stuck(const char* reason) {
    host_->drain_stuck(reason);
    if (settings_.leave_process) settings_.leave_process(exit_status::callback_stuck);
    host_->abandon();
    if (on_stuck_) on_stuck_();
    const std::lock_guard lock(mutex_);
    life_ = life::stuck;
    changed_.notify_all();
  }

  std::mutex mutex_;
  // The mutex guards life_ and has_loop_ended_, and changed_ tells of both.
  std::condition_variable changed_;
  life life_ = life::serving;
  bool has_loop_ended_ = false;

  const configuration settings_;
  const std::function<void()> on_stuck_;
  std::shared_ptr<shard_host> host_;
};

/// The names of the stream, the application and the worker. `variables` are those of this process,
/// or of the launcher that has handed the shard over.
shard_context::fields names_in(const detail::environment& variables) {
  return {.stream_name = variables("KCLXX_STREAM_NAME"),
          .application_name = variables("KCLXX_APPLICATION_NAME"),
          .worker_id = variables("KCLXX_WORKER_ID")};
}

/// Makes a session, with the variables' settings of log and metrics.
/// Errors: std::exception.
std::shared_ptr<shard_host_threads> make_host_threads(
    const shard_host_threads::configuration& configuration, const processor_factory& make_processor,
    run_options options, const detail::environment& variables,
    std::function<void()> on_stuck = {}) {
  std::vector<std::string> problems;
  options.logging = observability::with_environment(options.logging, variables, problems);
  options.metrics = observability::with_environment(options.metrics, variables, problems);
  auto threads = std::make_shared<shard_host_threads>(configuration, make_processor, options,
                                                      std::move(on_stuck));
  threads->host().start_observation();
  for (const std::string& problem : problems) threads->host().log(log_level::warning, problem, {});
  return threads;
}

/// Writes a line to options.log, or to stderr, when there is no session.
void log(const run_options& options, log_level level, const std::string& text) {
  const log_entry entry{level, {}, detail::printable(text)};
  try {
    if (options.log) return options.log(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the line goes to stderr then
  }
  const std::string line = observability::text_line(entry);
  std::string_view unwritten = line;
  // Unbuffered, so that std::_Exit loses nothing. A closed descriptor must not end the shard.
  static_cast<void>(io::write_now(STDERR_FILENO, unwritten));
}

/// Logs an error that prevents a session.
void log_failure(const run_options& options, const std::exception& error) {
  log(options, log_level::error, std::string("cannot serve the daemon: ") + detail::text_of(error));
}

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
        io::enlarge_pipe(shard.input.get());
        const auto variables = [&shard](const char* name) { return shard.variable(name); };
        return make_host_threads(
            {.input = shard.input.get(),
             .output = shard.output.get(),
             .log = shard.error.get(),
             .names = names_in(variables),
             .daemon = io::daemon_process(variables(io::daemon_variable), shard.daemon),
             .shared_loop = &loop},
            make_processor, shared_options, variables, std::move(on_stuck));
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
  return static_cast<int>(serve(
      {.input = stdio->input(),
       .output = stdio->output(),
       .log = STDERR_FILENO,
       .names = runtime::names_in(detail::own_environment),
       .daemon =
           io::daemon_process(detail::own_environment(io::daemon_variable), parent_daemon(*stdio)),
       .leave_process = [](exit_status status) { std::_Exit(static_cast<int>(status)); }},
      make_processor, options));
}

}  // namespace kclxx
