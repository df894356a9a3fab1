// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <kclxx/checkpointer.hpp>
#include <kclxx/detail/export.hpp>
#include <kclxx/detail/shard_service.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// What a processor can know about its shard, its clock and its timers. A session makes it; in a
/// test the test kit does.
///
/// Errors: besides those named below, std::bad_alloc; in the test kit also process_ended, which a
/// `catch (...)` must rethrow, and std::logic_error for a use that the kit does not support.
/// Thread safety: all functions may be called from any thread; in the test kit from the test's
/// thread only.
/// Lifetime: as long as the processor, which may keep the reference that it got.
class KCLXX_EXPORT shard_context {
 public:
  /// The clock of now(), timers and deadlines.
  using clock = detail::shard_service::clock;
  /// Names a timer for cancel().
  using timer_id = detail::shard_service::timer_id;

  /// What a context tells of its shard.
  struct fields {
    /// See shard_id().
    std::string shard_id{};
    /// See start_position().
    std::optional<sequence_position> start_position{};
    /// See stop_token().
    std::stop_token stop_token{};
    /// See stream_name().
    std::optional<std::string> stream_name{};
    /// See application_name().
    std::optional<std::string> application_name{};
    /// See worker_id().
    std::optional<std::string> worker_id{};
  };

  shard_context(const shard_context&) = delete;
  shard_context& operator=(const shard_context&) = delete;
  ~shard_context() = default;

  /// For instance "shardId-000000000003".
  [[nodiscard]] const std::string& shard_id() const noexcept { return fields_.shard_id; }

  /// Where reading begins: after this position, or at a sentinel such as TRIM_HORIZON.
  /// std::nullopt when the daemon did not send it.
  [[nodiscard]] const std::optional<sequence_position>& start_position() const noexcept {
    return fields_.start_position;
  }

  /// A stop is requested when further work on this shard has no effect: its lease is lost, the
  /// daemon is gone, or the session ends. A callback that takes long should check the token, and
  /// return.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return fields_.stop_token; }

  /// The shard's clock: real time under the daemon, virtual time in the test kit.
  [[nodiscard]] clock::time_point now() const { return service_->now(); }
  /// now() as a date, which compares with record::approximate_arrival_timestamp. In the test kit it
  /// moves with the virtual clock.
  [[nodiscard]] std::chrono::system_clock::time_point date() const { return service_->date(); }
  /// Sleeps. Returns true at the deadline, and false as soon as a stop is requested.
  /// Blocking: as long as it sleeps. In the test kit the virtual clock moves instead.
  bool sleep_until(clock::time_point deadline) const { return service_->sleep_until(deadline); }
  /// Sleeps as sleep_until does, for a time from now.
  bool sleep_for(clock::duration time) const {
    const auto began = now();
    const auto longest = clock::time_point::max() - began;
    return sleep_until(began + std::min(time, longest));
  }

  /// `after` calls the function once, when `delay` has passed; `every` calls it in each `period`.
  /// Both call it on the callbacks' thread, between callbacks, on an idle shard too. Periods that
  /// elapse during a callback cause one call after it. Timers end before lease_lost is called, and
  /// with the session; a timer that is started after that never runs. An exception is treated like
  /// one from a callback. A delay below zero counts as zero.
  /// Errors: std::logic_error for a period below 1 ms.
  /// Lifetime: the function is destroyed after its last call, or when the timer is cancelled.
  timer_id after(std::chrono::milliseconds delay, std::function<void()> function) const;
  /// Calls the function in each `period`; see after().
  timer_id every(std::chrono::milliseconds period, std::function<void()> function) const;
  /// Ends a timer. Does nothing if it has ended already. After a call on the callbacks' thread the
  /// function does not run again; after one on another thread it may still be running.
  void cancel(timer_id timer) const { service_->cancel_timer(timer); }

  /// Ends the session as an exception from a callback does: for a thread of the processor's own,
  /// whose exceptions nobody else catches. A stop is requested at once, also while a callback
  /// waits. The first failure counts. An exception for a lost lease is treated as one from a
  /// callback (see record_processor).
  /// Errors: std::invalid_argument for a null pointer.
  void fail(std::exception_ptr thrown) const;

  /// Asks the daemon to stop, with SIGTERM: all shards of the worker are shut down, this one too.
  /// Callbacks go on until shutdown_requested. A supervisor starts the worker again unless its
  /// configuration prevents it. The first call of a session writes a line to the log; further calls
  /// do nothing. Without a daemon, as under `kclxx replay` and `serve`,
  /// there is nothing to stop, and only the line is written.
  void request_worker_stop() const { service_->request_worker_stop(); }

  /// Writes `text`, with the shard's id and `position`, to run_options::log, or where
  /// run_options::logging demands if that is empty. What a terminal could obey is escaped. A thread
  /// of the session writes the line. A text below log_options::level is dropped, and so are lines
  /// that nobody reads in time: a later line states how many.
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>& position = std::nullopt) const {
    service_->log(level, text, position);
  }

  /// The names of stream, application and worker; std::nullopt if unknown. `run` takes them from
  /// the environment variables KCLXX_STREAM_NAME, KCLXX_APPLICATION_NAME and KCLXX_WORKER_ID, which
  /// `kclxx daemon run` exports; `serve` takes them from its transport.
  [[nodiscard]] const std::optional<std::string>& stream_name() const noexcept {
    return fields_.stream_name;
  }
  /// The name of the application; see stream_name().
  [[nodiscard]] const std::optional<std::string>& application_name() const noexcept {
    return fields_.application_name;
  }
  /// The name of the worker; see stream_name().
  [[nodiscard]] const std::optional<std::string>& worker_id() const noexcept {
    return fields_.worker_id;
  }

 private:
  friend struct detail::service_access;
  shard_context(fields values, std::shared_ptr<detail::shard_service> service)
      : fields_(std::move(values)), service_(std::move(service)) {}

  fields fields_;
  std::shared_ptr<detail::shard_service> service_;
};

}  // namespace kclxx
