// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <kclxx/exit_status.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_context.hpp>

#include "base/environment.hpp"
#include "io/process_identity.hpp"
#include "runtime/shard_host.hpp"

namespace kclxx::runtime {

/// The threads of a shard_host, and its end.
///
/// Thread safety: all functions from any thread, but where stated.
class shard_host_threads final : public std::enable_shared_from_this<shard_host_threads> {
 public:
  using configuration = shard_host::configuration;

  /// `on_stuck`: with a shared loop, called when user code does not return, so that serve() does
  /// not either. Nothing else of the session uses its descriptors any more. It is called on any
  /// thread. If user code returns after all, serve() returns callback_stuck once `on_stuck` has
  /// returned.
  /// Errors: std::exception when a descriptor or a thread cannot be had.
  shard_host_threads(const configuration& settings, processor_factory make_processor,
                     const run_options& options, std::function<void()> on_stuck = {});

  [[nodiscard]] shard_host& host() noexcept { return *host_; }
  /// Runs the session to its end. Call it once. Which thread does what:
  ///
  /// with            callbacks     event loop    user code that does not return
  /// a loop          this thread   the caller's  on_stuck is called; this function does not return
  /// leave_process   this thread   ours          leave_process is called
  /// neither         ours          ours          this function returns; their thread stays
  exit_status serve();

 private:
  enum class life { serving, finished, leaving_stuck, stuck };

  exit_status serve_with_own_loop();
  void run_callbacks();
  void run_loop();
  void end_loop(std::thread& thread);
  void leave_stuck(const char* reason);
  void finish_stuck(const char* reason);

  std::mutex mutex_;
  // Guarded by it.
  std::condition_variable changed_;
  life life_ = life::serving;
  bool has_loop_ended_ = false;

  const configuration settings_;
  const std::function<void()> on_stuck_;
  std::shared_ptr<shard_host> host_;
};

// What environment variables say of a session: those of this process, or of the one that has handed
// a shard over.

/// The names of the stream, the application and the worker.
shard_context::fields names_in(const detail::environment& variables);

std::optional<io::process_identity> daemon_in(const detail::environment& variables,
                                              const io::process_identity& parent);

/// With the variables' settings of log and metrics. Errors: std::exception.
std::shared_ptr<shard_host_threads> make_host_threads(
    const shard_host_threads::configuration& configuration, const processor_factory& make_processor,
    run_options options, const detail::environment& variables, std::function<void()> on_stuck = {});

}  // namespace kclxx::runtime
