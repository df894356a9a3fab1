// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <kclxx/error.hpp>
#include <kclxx/export.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

namespace detail {
class checkpoint_port;
}

/// Persists how far a shard was processed: after a restart or on another worker, reading goes on
/// behind the position that was checkpointed last.
///
/// 1. With `complete_when::on_return` (the default) nothing needs to be called: what
///    process_records returned from is checkpointed by itself.
/// 2. With `complete_when::by_request`, call `request` (does not wait) or `checkpoint` (waits) once
///    records are done.
///
/// A handle: copies are cheap and speak for the same shard, and one may outlive the shard (then
/// every call fails with errc::daemon_gone).
/// Thread safety: all functions may be called from any thread, on the same object too.
class KCLXX_EXPORT checkpointer {
 public:
  using clock = std::chrono::steady_clock;

  /// Persists `position` and all before it, and waits for the daemon's word. A `record` may be
  /// given for its position. Already persisted: returns at once.
  ///
  /// Retryable errors are retried as run_options::retry says. Calls that wait at the same time
  /// share one message to the daemon.
  /// Errors: checkpoint_error.
  /// Blocking: until the daemon answers. The daemon listens only while it waits for a callback
  /// to return: from another thread a call between two callbacks waits for the next one, on an
  /// idle shard for hours. Give a deadline there, or use `request`.
  void checkpoint(const sequence_position& position) { wait(position, std::nullopt); }
  void checkpoint(const sequence_position& position, std::error_code& ec) {
    wait(position, std::nullopt, ec);
  }

  /// The same for everything delivered so far. In shard_ended it says that the shard is finished
  /// (the library does that by itself when shard_ended returns).
  void checkpoint() { wait(std::nullopt, std::nullopt); }
  void checkpoint(std::error_code& ec) { wait(std::nullopt, std::nullopt, ec); }

  /// The same with a deadline, after which they fail with errc::timed_out. The position then
  /// stays pending, as if it had been requested. shard_context::now() is the clock.
  void checkpoint_until(clock::time_point deadline, const sequence_position& position) {
    wait(position, deadline);
  }
  void checkpoint_until(clock::time_point deadline, const sequence_position& position,
                        std::error_code& ec) {
    wait(position, deadline, ec);
  }
  void checkpoint_until(clock::time_point deadline) { wait(std::nullopt, deadline); }
  void checkpoint_until(clock::time_point deadline, std::error_code& ec) {
    wait(std::nullopt, deadline, ec);
  }

  /// Raises the highest pending position to `position`, which is sent as soon as the daemon
  /// listens; a lower one than is pending or persisted changes nothing. Failures are logged, and
  /// retryable ones tried again. What a callback requests goes out when it returns, or when it
  /// has lasted 5 ms.
  ///
  /// A position that was kept elsewhere, in a file for instance, may lie beyond what was delivered
  /// to this process: call without a position then.
  ///
  /// Returns false when it is too late: the lease is lost or the daemon gone.
  /// Errors: checkpoint_error with errc::position_out_of_range or errc::invalid_position.
  /// Blocking: no.
  bool request(const sequence_position& position) { return raise(position); }
  /// The same for everything delivered so far.
  bool request() { return raise(std::nullopt); }

  /// For the runtime and the test kit.
  explicit checkpointer(std::shared_ptr<detail::checkpoint_port> port) noexcept
      : port_(std::move(port)) {}

 private:
  using optional_position = std::optional<sequence_position>;
  using optional_deadline = std::optional<clock::time_point>;

  void wait(const optional_position& position, optional_deadline deadline);
  void wait(const optional_position& position, optional_deadline deadline, std::error_code& ec);
  bool raise(const optional_position& position);

  std::shared_ptr<detail::checkpoint_port> port_;
};

}  // namespace kclxx
