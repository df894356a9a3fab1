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

/// Serves a session: gives its shard_host the threads, and ends them.
///
/// Thread safety: all functions from any thread, except where stated.
class shard_host_threads final : public std::enable_shared_from_this<shard_host_threads> {
 public:
  using configuration = shard_host::configuration;

  /// `on_stuck`: with a shared loop it is called on any thread when user code does not return, so
  /// that serve() does not return either. The session does not use its descriptors any more. If
  /// user code returns after that, serve() returns callback_stuck as soon as `on_stuck` has
  /// returned.
  /// Errors: std::exception when a descriptor or a thread cannot be had.
  shard_host_threads(const configuration& settings, processor_factory make_processor,
                     const run_options& options, std::function<void()> on_stuck = {});

  [[nodiscard]] shard_host& host() noexcept { return *host_; }
  /// Runs the session to its end. Call it once.
  ///
  /// with           callbacks     event loop         user code that does not return
  /// shared_loop    this thread   the caller's loop  on_stuck is called; serve() does not return
  /// leave_process  this thread   a new thread       leave_process is called
  /// neither        a new thread  a new thread       serve() returns; the callbacks' thread stays
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
  // The mutex guards life_ and has_loop_ended_, and changed_ tells of both.
  std::condition_variable changed_;
  life life_ = life::serving;
  bool has_loop_ended_ = false;

  const configuration settings_;
  const std::function<void()> on_stuck_;
  std::shared_ptr<shard_host> host_;
};

// Settings of a session in environment variables, of this process or of the launcher that has
// handed the shard over.

/// The names of the stream, the application and the worker.
shard_context::fields names_in(const detail::environment& variables);

std::optional<io::process_identity> daemon_in(const detail::environment& variables,
                                              const io::process_identity& parent);

/// Makes a session, with the variables' settings of log and metrics.
/// Errors: std::exception.
std::shared_ptr<shard_host_threads> make_host_threads(
    const shard_host_threads::configuration& configuration, const processor_factory& make_processor,
    run_options options, const detail::environment& variables, std::function<void()> on_stuck = {});

}  // namespace kclxx::runtime
