// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

#include "processing/failure_handling.hpp"
#include "processing/wake_ups.hpp"
#include "processing/window_reports.hpp"
#include "processing/work_list.hpp"

namespace kclxx::processing {

/// Has the records of one shard processed side by side: who calls handlers when, and what the
/// callbacks wait for. Runners, completions and callbacks change the work_list under one mutex.
///
/// A runner is a function on a thread of the pool that takes records until none is ready. With a
/// record_handler there are up to parallel_options::lanes of them, which park, too. With an
/// async_record_handler there is one, which starts handlers and decides on failures; completions
/// report on any thread. Then another thread parks, so that a lot which blocks stops no lane.
///
/// In callbacks, the callbacks' thread admits records and requests checkpoints. While a callback
/// waits, and between callbacks in a timer, it makes retries ready, reports what is stuck, and
/// throws what ends the session. Before it throws it requests a last checkpoint, unless the lease
/// is lost.
///
/// record_queue has what is ready, completion_window what is complete; failure_handling decides on
/// failures. A runner applies its own result: on the callbacks' thread that would cost two switches
/// between threads for each record.
///
/// While the mutex is held no user code is called, and of the service only is_observed() and its
/// pool's post().
///
/// Thread safety: report functions from any thread, the others on the callbacks' thread. Lifetime:
/// completions may outlive it; they have a weak pointer.
class dispatcher final : public std::enable_shared_from_this<dispatcher> {
 public:
  using time_point = work_list::time_point;
  using handler = std::variant<record_handler::of_shard, async_record_handler::of_shard>;

  /// Precondition: the options are valid. Errors: those of failure_handling.
  dispatcher(failure_policy policy, const parallel_options& options, const shard_context& shard,
             bool is_async);
  /// Call it first.
  template <class Handler>
  void make_handler(const Handler& user_handler) {
    handler_.emplace(user_handler.make(shard_));
  }

  // Callbacks. Errors: what ends the processing.
  /// Returns when the batch is in the window, but for the records of a repeated delivery.
  void process(const record_batch& batch);
  /// Returns when all records are complete.
  void finish();
  /// The same, but with a time limit.
  void drain();
  /// Nothing more is taken, and reports have no effect.
  void end();
  /// Waits for the handlers that run. No callback follows.
  void join();

  // Reports of an async_record_handler's completions.
  void complete(const attempt_ticket& ticket);
  void fail(const attempt_ticket& ticket, std::exception_ptr exception);
  void touch(const attempt_ticket& ticket);

 private:
  struct locked_change;
  template <class Body>
  void change(Body body);
  /// What a callback waits for.
  enum class goal { room, empty_window, no_handler };
  /// When what ends the processing leaves a callback, or a timer if none is open.
  enum class failure_kind {
    none,
    at_once,
    after_handlers,  ///< in a callback those that run have drain_timeout to end
    lease_gone,      ///< at once, without a checkpoint
  };

  void start_timer(time_point time);

  // With the mutex held.
  [[nodiscard]] bool is_over() const {
    return has_ended_ || failed_ != failure_kind::none || stop_.stop_requested();
  }
  /// Whether a runner may take a record.
  [[nodiscard]] bool may_take(time_point now) const {
    return !is_over() && (!last_take_ || now < *last_take_);
  }
  /// What is still to be thrown.
  [[nodiscard]] failure_kind pending_failure() const {
    return failure_ ? failed_ : failure_kind::none;
  }
  /// Null when the attempt has ended, or when it is too late for a report.
  [[nodiscard]] const handlers_in_progress::attempt* reporting(const attempt_ticket& ticket);
  [[nodiscard]] bool has_reached(goal awaited);
  [[nodiscard]] std::optional<time_point> next_wake(time_point now);
  void post_runners();
  void mark_complete(const attempt_ticket& ticket, wake_ups::to_do& wake_up);
  /// Wakes a callback whose goal is reached, or by the time of its next checkpoint.
  void wake_callback_if_due(wake_ups::to_do& wake_up);
  void wake_by(const std::optional<time_point>& time, wake_ups::to_do& wake_up);
  void set_failure(std::exception_ptr& exception, failure_kind kind, time_point now,
                   wake_ups::to_do& wake_up);
  /// A failure to decide on, or a record, which is a probe if the circuit is open.
  [[nodiscard]] std::optional<work> take_work(time_point now);
  void clear_if_unused();

  // Runners.
  void run() noexcept;
  void break_off(std::exception_ptr exception) noexcept;
  void call_handler(const work& work);
  void start_handler(const work& work);
  void decide(const work& work, std::exception_ptr thrown);
  /// A record that failed, and what is to become of it.
  struct decision {
    work of;
    failed_attempts attempts{};
    failure made{};
  };
  void park(std::list<decision>& decided);
  void run_parker() noexcept;
  void carry_out(decision& decided);

  // The callbacks' thread.
  template <class Body>
  void callback(Body body);
  /// False when the deadline has passed, or a stop was requested.
  bool wait(goal awaited, time_point deadline);
  /// Running handlers have until drain_timeout or the callback's deadline, whichever comes first.
  void throw_failure(time_point deadline);
  [[noreturn]] void rethrow_failure();
  void request_checkpoint();
  void on_timer(time_point due);
  void report_stuck();
  void report_fewer_stuck();
  void end_takes(const std::optional<time_point>& time);
  void observe_window(bool is_full);

  const parallel_options options_;
  const std::unique_ptr<const shard_context> own_shard_;  // reports may outlive the session's
  const shard_context& shard_;
  const std::shared_ptr<detail::shard_service> service_;  // the session's own
  const std::stop_token stop_;
  failure_handling failures_;
  const bool is_async_;
  std::optional<handler> handler_;

  std::mutex observing_;  // locked before mutex_, so that events leave in order
  std::mutex mutex_;
  work_list work_;
  wake_ups wake_ups_;
  goal waits_for_ = goal::room;   // while it waits
  std::uint64_t next_bytes_ = 0;  // of the record that waits for goal::room
  std::unique_ptr<detail::thread_pool> pool_;
  std::size_t runners_ = 0;           // posted or running
  std::list<decision> to_be_parked_;  // of an async_record_handler
  bool is_parking_ = false;           // its parker is posted or runs
  bool has_ended_ = false;
  std::optional<time_point> last_take_;  // the end of drain_timeout: then no runner takes a record
  failure_kind failed_ = failure_kind::none;  // the first failure's
  std::exception_ptr failure_;                // until a callback or a timer throws it
  window_reports reports_;
  std::optional<sequence_position> last_admitted_;  // the callbacks' thread alone uses it
};

}  // namespace kclxx::processing
