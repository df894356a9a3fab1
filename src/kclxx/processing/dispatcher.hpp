// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <variant>

#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

#include "processing/failure_handling.hpp"
#include "processing/handlers_in_progress.hpp"
#include "processing/record_queue.hpp"

namespace kclxx::processing {

/// Has the records of one shard processed side by side: a record_queue and handlers_in_progress
/// under one mutex, and who calls handlers when.
///
/// A lane is a function on a thread of the pool that takes records until none is ready. With a
/// record_handler there are up to parallel_options::lanes of them. With an async_record_handler
/// there is one, which starts the handlers; completions report to it.
///
/// The callbacks' thread admits records, makes retries ready, requests checkpoints, reports what is
/// stuck, and throws what ends the session: while a callback waits, and between callbacks in a
/// timer.
///
/// The mutex is held for no call of user code or of the service.
///
/// Thread safety: report functions and state() from any thread, the others on the callbacks'
/// thread. Lifetime: completions outlive it, with a weak pointer.
class dispatcher final : public std::enable_shared_from_this<dispatcher> {
 public:
  using time_point = record_queue::time_point;
  using handler = std::variant<record_handler::of_shard, async_record_handler::of_shard>;
  using ticket = handlers_in_progress::ticket;

  /// Errors: std::invalid_argument.
  dispatcher(handler with, failure_policy policy, const parallel_options& options,
             const shard_context& shard);

  // Callbacks. Errors: what ends the processing.
  /// Returns when the batch is in the window.
  void process(const record_batch& batch, const checkpointer& with);
  /// Returns when all records are complete.
  void finish(const checkpointer& with);
  /// The same, but with a time limit.
  void drain(const checkpointer& with);
  /// Nothing more is taken, and reports have no effect.
  void end();
  /// Waits for the handlers that run. No callback follows.
  void join();

  // Reports of an async_record_handler's completions.
  void complete(const ticket& one);
  void fail(const ticket& one, std::exception_ptr why);
  void touch(const ticket& one);

  /// std::nullopt when the processing has ended.
  [[nodiscard]] std::optional<window_state> state() const;

 private:
  /// What the callbacks' thread waits for.
  enum class goal { none, room, empty_window, no_handler };
  /// What a lane does next.
  struct work {
    ticket with;
    std::exception_ptr failed;  // null: call the handler
    const record* what = nullptr;
    record_batch batch;  // of an async_record_handler's
    int attempt = 1;
    time_point began{};
    time_point ended{};  // of an async_record_handler's that has failed
  };
  /// What is to be done once the mutex is released.
  struct follow_up {
    bool notify = false;
    bool is_unstuck = false;
    std::optional<time_point> timer{};
  };
  /// When a failure leaves a callback, or a timer if none is open.
  enum class failure_kind {
    at_once,
    after_handlers,  ///< those that run have drain_timeout to end
    lease_gone,      ///< at once, without a checkpoint
  };

  // With the mutex held.
  [[nodiscard]] bool is_over() const { return has_ended_ || failure_ || stop_.stop_requested(); }
  [[nodiscard]] bool has_reached(goal what) const;
  [[nodiscard]] std::optional<time_point> next_wake() const;
  void post_lanes();
  [[nodiscard]] std::optional<work> take_work(time_point now);
  void remove(const ticket& one, follow_up& then);
  void complete(arrival which);
  /// Whether the callbacks' thread has to be woken.
  void look(time_point now, follow_up& then);
  void arm(const std::optional<time_point>& when, follow_up& then);
  /// The callbacks' thread waits again, until then at the latest.
  void wake_before(const std::optional<time_point>& when, follow_up& then);
  void set_failure(std::exception_ptr why, failure_kind kind, time_point now, follow_up& then);
  void arm_for_failure(time_point now, follow_up& then);
  void clear_if_unused();
  [[nodiscard]] std::string describe(arrival which) const;
  [[nodiscard]] int attempt_of(arrival which) const;

  void carry_out(const follow_up& then);
  void start_timer(time_point when);

  // Lanes.
  void run_lane() noexcept;
  void give_up(const std::exception_ptr& why) noexcept;
  void call(const work& one);
  void handler_threw(const work& one, std::exception_ptr thrown);
  void decide(const work& one, std::exception_ptr thrown);

  // The callbacks' thread.
  template <class Body>
  void callback(Body body);
  /// False when the deadline has passed, or the stop token has stopped.
  bool wait(goal what, const std::optional<time_point>& deadline, const checkpointer& with);
  void throw_failure(const checkpointer& with);
  void request_checkpoint(const checkpointer& with);
  void on_timer(time_point which);
  void report_stuck();
  /// Returns whether the next thread should be asked where it stands.
  bool report_stuck(const ticket& one, time_point now, bool asks_thread);
  void observe_window(bool is_due);

  const parallel_options options_;
  const shard_context& shard_;
  const std::string shard_id_ = shard_.shard_id();  // state() may be called when the shard is gone
  const std::shared_ptr<shard_service> service_;
  const std::stop_token stop_;
  failure_handling failures_;
  const bool is_async_;
  std::optional<handler> handler_;

  mutable std::mutex mutex_;
  record_queue queue_;
  handlers_in_progress handlers_;
  std::unordered_map<arrival, failed_attempts> attempts_;  // of records that have failed
  std::deque<work> failed_;  // of an async_record_handler: to be decided on
  std::unique_ptr<thread_pool> pool_;
  std::size_t lanes_ = 0;  // posted or running
  goal waits_for_ = goal::none;
  time_point waits_until_{};
  const record* next_ = nullptr;  // while goal::room is waited for
  bool is_callback_open_ = false;
  bool has_ended_ = false;
  bool is_joined_ = false;
  std::exception_ptr failure_;  // ends the processing
  failure_kind failure_kind_ = failure_kind::at_once;
  bool is_failure_thrown_ = false;
  std::optional<time_point> timer_;  // the next one
  std::optional<shard_service::timer_id> timer_id_;
  arrival requested_ = 0;  // the watermark of the last checkpoint
  time_point requested_at_{};
  time_point window_observed_at_{};
  bool was_window_observed_empty_ = true;
};

}  // namespace kclxx::processing
