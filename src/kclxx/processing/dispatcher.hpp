// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

#include "io/copy_guard.hpp"
#include "processing/failure_handling.hpp"
#include "processing/window.hpp"

namespace kclxx::processing {

/// The threads of one shard in `parallel`, and what they wait for: docs/architecture.md has a table
/// of them. What they do to the records is in `window`, what becomes of a failed record in
/// failure_handling.
///
/// While a callback waits, and between callbacks in a timer, the callbacks' thread makes retries
/// ready, reports what is stuck, and throws what ends the session. A runner applies its own result:
/// on the callbacks' thread that would cost two switches between threads for each record.
///
/// While mutex_ is held no user code is called, and of the service only is_observed() and its
/// pool's post().
///
/// Thread safety: report functions from any thread, the others on the callbacks' thread. Lifetime:
/// completions may outlive it; they have a weak pointer.
class dispatcher final : public std::enable_shared_from_this<dispatcher> {
 public:
  using time_point = window::time_point;

  /// Precondition: the options are valid. Errors: those of failure_handling, and what the user's
  /// function throws that makes the handler.
  template <class Handler>
  dispatcher(failure_policy policy, const parallel_options& options, const shard_context& shard,
             const Handler& user_handler)
      : dispatcher(std::move(policy), options, shard,
                   std::is_same_v<Handler, async_record_handler>) {
    handler_.emplace(user_handler.make(*shard_));
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
  void complete(const ticket& one);
  void fail(const ticket& one, std::exception_ptr exception);
  void touch(const ticket& one);

 private:
  using handler = std::variant<record_handler::of_shard, async_record_handler::of_shard>;
  /// What is still done. A failure leaves the next callback or timer, which then is over.
  enum class phase {
    works,
    fails,                 ///< at once
    fails_after_handlers,  ///< in a callback those that run have drain_timeout to end
    lease_gone,            ///< at once, without a checkpoint
    over,
  };
  /// What a callback waits for.
  enum class goal { look, room, empty_window, no_handler };
  /// A record that failed, and what is to become of it.
  struct decision {
    ticket of;
    std::chrono::nanoseconds duration;
    failure made;
  };
  using decisions = std::list<decision>;
  /// What change() does once the mutex is released.
  struct to_do {
    const time_point now;
    bool notify = false;
    std::optional<time_point> timer{};
  };

  dispatcher(failure_policy policy, const parallel_options& options, const shard_context& shard,
             bool is_async);
  template <class Body>
  void change(Body body);
  template <class Body>
  void guarded(Body body) noexcept;

  // With the mutex held.
  [[nodiscard]] bool works() const { return phase_ == phase::works && !stop_.stop_requested(); }
  [[nodiscard]] bool may_take(time_point now) const { return works() && now < last_take_; }
  [[nodiscard]] bool has_failed() const { return phase_ != phase::works && phase_ != phase::over; }
  /// False when the attempt has ended, or when it is too late for a report, which then ends it.
  [[nodiscard]] bool may_report(const ticket& one);
  [[nodiscard]] bool has_reached(goal awaited) const;
  [[nodiscard]] bool can_begin() const { return failed_.empty() && window_.can_begin(); }
  [[nodiscard]] std::size_t runners_wanted() const;
  void post_runners();
  void post(void (dispatcher::*function)());
  decisions failed(const ticket& one, std::exception_ptr thrown, to_do& then);
  void set_failure(std::exception_ptr& exception, phase kind, to_do& then);
  /// When a callback that waits should request a checkpoint.
  [[nodiscard]] std::optional<time_point> request_due() const;
  [[nodiscard]] std::optional<time_point> next_wake(time_point now) const;
  void wake_by(const std::optional<time_point>& time, to_do& then);
  void wake_callback_if_due(to_do& then);
  void notify(to_do& then);

  // Threads of the pool.
  void run() noexcept;
  void call_handler(const window::begun& one);
  void start_handler(const window::begun& one);
  void decide(decisions& failed);
  void run_parker() noexcept;
  void park(decisions& decided);
  void carry_out(decision& decided);

  // The callbacks' thread.
  template <class Body>
  void callback(Body body);
  /// False when the deadline has passed, or a stop was requested. Errors: what ends the processing.
  bool wait(goal awaited, time_point deadline);
  [[noreturn]] void throw_failure();
  void end_takes(time_point time);
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
  failure_handling failures_;
  const bool is_async_;
  std::optional<handler> handler_;
  std::optional<sequence_position> last_admitted_;  // the callbacks' thread alone uses it

  std::mutex observing_;  // locked before mutex_, so that events leave in order
  std::mutex mutex_;
  window window_;
  phase phase_ = phase::works;
  time_point last_take_ = time_point::max();  // the end of drain_timeout: then nothing is taken
  std::exception_ptr failure_;                // until a callback or a timer throws it

  std::unique_ptr<detail::thread_pool> pool_;
  std::size_t runners_ = 0;  // posted or running
  decisions failed_;         // of an async_record_handler: to be decided on
  decisions to_be_parked_;   // of an async_record_handler
  bool is_parking_ = false;  // its parker is posted or runs

  // When the callbacks' thread looks again.
  bool is_open_ = false;  // a callback
  std::optional<time_point> waits_until_;
  goal waits_for_ = goal::look;
  std::uint64_t next_bytes_ = 0;     // of the record that waits for goal::room
  std::optional<time_point> timer_;  // the next one
  std::optional<detail::shard_service::timer_id> timer_id_;

  // What was reported last.
  ordinal requested_ = 0;  // the watermark of the last checkpoint: window::first()
  time_point last_request_{};
  time_point last_event_{};
  bool was_empty_ = true;
};

}  // namespace kclxx::processing

namespace kclxx::detail {

/// What a completion is a handle of: it keeps the record alive, but not the processing.
class taken_record {
 public:
  std::weak_ptr<processing::dispatcher> owner;
  processing::ticket ticket;
  record_batch batch;
  kclxx::record record;

  [[nodiscard]] static completion completion_of(taken_record taken) {
    return completion(std::make_unique<taken_record>(std::move(taken)));
  }
};

}  // namespace kclxx::detail
