// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

#include "io/copy_guard.hpp"
#include "processing/failure_handling.hpp"
#include "processing/next_look.hpp"
#include "processing/window.hpp"

namespace kclxx::processing {

/// The threads of one shard in `parallel`, and what they wait for: docs/architecture.md has a table
/// of them. `window` has the states of the records, failure_handling finds the verdict on a failed
/// one, and next_look() tells when the callbacks' thread looks again.
///
/// A runner applies its own result: on the callbacks' thread that would cost two switches between
/// threads for each record. The callbacks' thread looks while a callback waits, and in a timer
/// between two callbacks.
///
/// While mutex_ is held no user code is called, and of the service only is_observed() and its
/// pool's post().
///
/// Thread safety: complete, fail and touch may be called from any thread, the other functions on
/// the callbacks' thread. Lifetime: completions may outlive it; they have a weak pointer.
class dispatcher final : public std::enable_shared_from_this<dispatcher> {
 public:
  using time_point = window::time_point;

  /// Precondition: the options are valid. Errors: those of failure_handling, and what the user's
  /// function throws that makes the handler.
  template <class Handler>
  dispatcher(failure_policy policy, const parallel_options& options, const shard_context& shard,
             const Handler& user_handler, std::function<void()> check_wait)
      : dispatcher(std::move(policy), options, shard, std::is_same_v<Handler, async_record_handler>,
                   std::move(check_wait)) {
    handler_.emplace(user_handler.make(*shard_));
  }

  // Callbacks. Errors: the exception that ends the processing.
  /// Returns when the batch is in the window. Records of a repeated delivery are left out.
  void process(const record_batch& batch);
  /// Returns when all records are complete, and requests a checkpoint of all.
  void finish_shard();
  /// Waits up to parallel_options::drain_timeout until all records are complete, and requests a
  /// checkpoint.
  void drain();
  /// From now on no attempt begins, and reports have no effect.
  void stop();
  /// Stops, and waits for the handlers that run. No callback follows.
  void join();

  // Reports of an async_record_handler's completions. Without effect when the attempt has ended.
  void complete(const attempt_id& id);
  void fail(const attempt_id& id, std::exception_ptr exception);
  void touch(const attempt_id& id);

 private:
  using handler = std::variant<record_handler::of_shard, async_record_handler::of_shard>;
  /// What is still done. A failure leaves the next callback or timer, which then is over.
  enum class phase {
    works,
    fails,                 ///< at once
    fails_after_handlers,  ///< in a callback the handlers that run have drain_timeout to end
    lease_gone,            ///< at once, without a checkpoint
    over,
  };
  /// What a callback waits for. A look is there at once.
  enum class goal { look, room, empty_window, no_handler };
  /// A failed attempt whose verdict is to be found, or carried out.
  struct pending_failure {
    attempt_id id;
    std::chrono::nanoseconds duration;
    processing::failure failure;
  };
  /// A callback that waits.
  struct wait_state {
    goal awaited;
    time_point deadline;
    time_point until;  // when it looks again
  };
  /// What change() does once the mutex is released.
  struct deferred_effects {
    bool notify = false;
    time_point timer = never;
  };

  dispatcher(failure_policy policy, const parallel_options& options, const shard_context& shard,
             bool is_async, std::function<void()> check_wait);
  template <class Body>
  void change(Body body);
  template <class Body>
  void guarded(Body body) noexcept;

  // Precondition of these functions: the mutex is held.
  [[nodiscard]] bool works() const { return phase_ == phase::works && !stop_.stop_requested(); }
  [[nodiscard]] bool may_begin(time_point now) const { return works() && now < last_begin_; }
  [[nodiscard]] bool has_failed() const { return phase_ != phase::works && phase_ != phase::over; }
  [[nodiscard]] bool accepts_report_of(const attempt_id& id);
  [[nodiscard]] bool has_reached(goal awaited) const;
  [[nodiscard]] time_point next_checkpoint() const;
  [[nodiscard]] look_situation situation(time_point now) const;
  [[nodiscard]] deferred_effects wake_for_next_look(time_point now);
  [[nodiscard]] std::size_t runners_wanted() const;
  void post_runners();
  void post(void (dispatcher::*function)());
  [[nodiscard]] pending_failure end_failed_handler(const attempt_id& id, std::exception_ptr thrown,
                                                   time_point now);
  void set_failure(std::exception_ptr exception, phase kind);

  // Threads of the pool.
  void run() noexcept;
  void call_handler(const window::begun_attempt& begun);
  void start_handler(const window::begun_attempt& begun);
  void decide(pending_failure failed);
  void run_parker() noexcept;
  void park(std::span<pending_failure> judged);
  void carry_out(pending_failure& judged);

  // The callbacks' thread.
  template <class Body>
  void callback(time_point last_begin, Body body);
  bool wait(goal awaited, time_point deadline);
  [[nodiscard]] time_point begin_wait(goal awaited, time_point deadline);
  [[noreturn]] void throw_failure();
  void request_checkpoint();
  void start_timer(time_point time);
  void on_timer(time_point due);
  void report_stuck();

  template <class Event>
  void observe_in_order(Event make);
  void observe_window(bool is_full);

  const io::copy_guard copies_;
  const parallel_options options_;
  const std::unique_ptr<const shard_context> shard_;      // reports may outlive the session's
  const std::shared_ptr<detail::shard_service> service_;  // the session's own
  const std::stop_token stop_;
  failure_handling failures_;  // has locks of its own
  const bool is_async_;
  const std::function<void()> check_wait_;  // see detail::parallel_with_check; may be empty

  // The callbacks' thread changes these. Runners read the handler; join() has waited for them.
  std::optional<handler> handler_;
  std::optional<sequence_position> last_admitted_;

  /// Held while an event is made and sent, so that events leave in the order of what they tell.
  /// Locked before mutex_.
  std::mutex observing_;

  std::mutex mutex_;  // guards all that follows
  window window_;
  phase phase_ = phase::works;
  time_point last_begin_ = never;  // the end of a drain: no attempt begins after it
  std::exception_ptr failure_;     // until a callback or a timer throws it

  std::unique_ptr<detail::thread_pool> pool_;
  std::size_t runners_ = 0;                    // posted or running
  std::deque<pending_failure> undecided_;      // of an async_record_handler, for a runner
  std::vector<pending_failure> to_be_parked_;  // of an async_record_handler, for the parker
  bool has_parker_ = false;                    // posted or running

  // What the callbacks' thread does, and when it looks again.
  bool is_in_callback_ = false;
  std::optional<wait_state> waits_;
  std::uint64_t bytes_of_next_record_ = 0;  // which waits for goal::room
  time_point timer_ = never;                // the next one
  std::optional<detail::shard_service::timer_id> timer_id_;

  // What was reported last.
  ordinal requested_up_to_ = 0;  // window::first() when a checkpoint was requested
  time_point last_request_{};
  time_point last_window_event_{};
  bool was_window_empty_ = true;
};

}  // namespace kclxx::processing

namespace kclxx::detail {

/// What a completion is a handle of: it keeps the record alive, but not the processing.
class taken_record {
 public:
  std::weak_ptr<processing::dispatcher> owner;
  processing::attempt_id id;
  record_batch batch;
  kclxx::record record;

  [[nodiscard]] static completion completion_of(taken_record taken) {
    return completion(std::make_unique<taken_record>(std::move(taken)));
  }
};

}  // namespace kclxx::detail
