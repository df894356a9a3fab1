// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard_host_threads.hpp"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "io/process_identity.hpp"
#include "io/signals.hpp"
#include "observability/log_writer.hpp"
#include "observability/observation.hpp"

namespace kclxx::runtime {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

namespace {

/// The event loop ends at once, unless user code has closed its descriptors.
constexpr milliseconds last_of_loop{1000};

}  // namespace

shard_host_threads::shard_host_threads(const configuration& settings,
                                       processor_factory make_processor, const run_options& options,
                                       std::function<void()> on_stuck)
    : settings_(settings),
      on_stuck_(std::move(on_stuck)),
      host_(std::make_shared<shard_host>(
          settings, [this](const char* reason) { leave_stuck(reason); }, std::move(make_processor),
          options)) {}

exit_status shard_host_threads::serve() {
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

exit_status shard_host_threads::serve_with_own_loop() {
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

void shard_host_threads::end_loop(std::thread& thread) {
  host_->stop_loop();
  std::unique_lock lock(mutex_);
  const bool has_ended = changed_.wait_for(lock, last_of_loop, [this] { return has_loop_ended_; });
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

void shard_host_threads::run_callbacks() {
  host_->run();
  const std::lock_guard lock(mutex_);
  if (life_ == life::serving) life_ = life::finished;
  changed_.notify_all();
}

void shard_host_threads::run_loop() {
  host_->run_loop();
  const std::lock_guard lock(mutex_);
  has_loop_ended_ = true;
  changed_.notify_all();
}

/// User code cannot be ended. The session waits for what user code has logged, but not on the loop
/// that all sessions share. The callbacks' thread may return at the same time: the first of the two
/// that changes life_ decides how the session ends.
void shard_host_threads::leave_stuck(const char* reason) {
  {
    const std::lock_guard lock(mutex_);
    if (life_ != life::serving) return;
    life_ = life::leaving_stuck;
  }
  if (settings_.shared_loop == nullptr) return finish_stuck(reason);
  const io::signal_block block;
  std::thread([self = shared_from_this(), reason] { self->finish_stuck(reason); }).detach();
}

void shard_host_threads::finish_stuck(const char* reason) {
  host_->drain_stuck(reason);
  if (settings_.leave_process) settings_.leave_process(exit_status::callback_stuck);
  host_->abandon();
  if (on_stuck_) on_stuck_();
  const std::lock_guard lock(mutex_);
  life_ = life::stuck;
  changed_.notify_all();
}

shard_context::fields names_in(const detail::environment& variables) {
  return {.stream_name = variables("KCLXX_STREAM_NAME"),
          .application_name = variables("KCLXX_APPLICATION_NAME"),
          .worker_id = variables("KCLXX_WORKER_ID")};
}

std::optional<io::process_identity> daemon_in(const detail::environment& variables,
                                              const io::process_identity& parent) {
  return io::daemon_process(variables(io::daemon_variable), parent);
}

std::shared_ptr<shard_host_threads> make_host_threads(
    const shard_host_threads::configuration& configuration, const processor_factory& make_processor,
    run_options options, const detail::environment& variables, std::function<void()> on_stuck) {
  std::vector<std::string> problems;
  options.logging = observability::with_environment(options.logging, variables, problems);
  options.metrics = observability::with_environment(options.metrics, variables, problems);
  auto threads = std::make_shared<shard_host_threads>(configuration, make_processor, options,
                                                      std::move(on_stuck));
  threads->host().start_observation();
  for (const std::string& problem : problems) threads->host().log(log_level::warning, problem, {});
  return threads;
}

}  // namespace kclxx::runtime
