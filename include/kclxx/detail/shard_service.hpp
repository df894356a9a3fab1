// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <kclxx/detail/export.hpp>
#include <kclxx/log.hpp>
#include <kclxx/observer.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// See checkpointer::async_checkpoint.
using checkpoint_handler = std::function<void(std::error_code)>;

namespace detail {

/// Thrown into the user code of a simulated process that has ended, as in the test kit after
/// crash(): by each further checkpoint, wait, timer start, failure, log call and request of a
/// worker stop. Not a std::exception. A `catch (...)` block must rethrow it.
struct process_ended {};

/// Threads that run functions. Its destructor drops the functions that have not begun, and waits
/// for the functions that run.
/// Thread safety: `post` may be called from any thread.
class KCLXX_EXPORT thread_pool {
 public:
  thread_pool() = default;
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  /// Blocking: until the functions that run have returned.
  virtual ~thread_pool();

  /// Runs `function` later, on one of the threads. A pool of one thread runs functions in order.
  /// Precondition: `function` does not throw.
  /// Errors: std::bad_alloc.
  /// Blocking: no.
  virtual void post(std::function<void()> function) = 0;
};

/// Runs a shard in virtual time, in the test kit. An executor of the processor has no thread there:
/// the scheduler runs its functions.
/// Thread safety: none.
class KCLXX_EXPORT virtual_scheduler {
 public:
  struct executor {
    /// Runs a function that is ready. False when none is.
    std::function<bool()> run_one;
    /// When a timer makes a function ready.
    std::function<std::optional<std::chrono::steady_clock::time_point>()> next_timer;
  };

  virtual_scheduler() = default;
  virtual_scheduler(const virtual_scheduler&) = delete;
  virtual_scheduler& operator=(const virtual_scheduler&) = delete;
  virtual ~virtual_scheduler();

  /// Varies the jitter of waits from test to test.
  [[nodiscard]] virtual std::uint32_t seed() const noexcept = 0;
  /// Runs the executor's functions until the result is destroyed, which waits for a function that
  /// has begun.
  [[nodiscard]] virtual std::shared_ptr<void> adopt(executor adopted) = 0;
  /// For the processor's destructor: lets functions run and time pass until `is_over`. False when
  /// the grace time is over first.
  virtual bool run_until(const std::function<bool()>& is_over) = 0;
};

/// The interface behind `checkpointer` and `shard_context`: checkpoints, the clock, waiting,
/// timers, threads, failures, the log and the events of one shard. `run` and the test kit implement
/// it.
///
/// The library waits and sleeps only through this interface. So waiting takes no real time in the
/// test kit.
///
/// Errors: those named below, and as shard_context.
/// Thread safety: as shard_context.
class KCLXX_EXPORT shard_service {
 public:
  using clock = std::chrono::steady_clock;
  using timer_id = std::uint64_t;

  shard_service() = default;
  shard_service(const shard_service&) = delete;
  shard_service& operator=(const shard_service&) = delete;
  virtual ~shard_service();

  /// See checkpointer::async_checkpoint. std::nullopt covers everything, as checkpoint_target's
  /// default does. TRIM_HORIZON covers nothing and succeeds. An implementation calls the handler
  /// exactly once, without holding a lock. Another thread may call it before this function returns.
  /// Blocking: no.
  virtual void async_checkpoint(const std::optional<sequence_position>& position,
                                checkpoint_handler handler) = 0;
  /// See checkpointer::checkpoint. Returns the error, or an empty code once it is persisted.
  /// Blocking: until the daemon answers, or the deadline passes.
  virtual std::error_code checkpoint(const std::optional<sequence_position>& position,
                                     const std::optional<clock::time_point>& deadline) = 0;

  /// See shard_context::now.
  [[nodiscard]] virtual clock::time_point now() const = 0;
  /// See shard_context::date. By default the machine's date.
  [[nodiscard]] virtual std::chrono::system_clock::time_point date() const;
  /// See shard_context::sleep_until.
  /// Blocking: until the deadline, or until a stop is requested.
  virtual bool sleep_until(clock::time_point deadline) = 0;

  /// See shard_context::after and every, which have checked both durations. A `period` of zero
  /// means one call.
  /// Errors: std::logic_error when there are no timers.
  virtual timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                               std::function<void()> function) = 0;
  /// See shard_context::cancel.
  virtual void cancel_timer(timer_id timer) = 0;

  /// Waits until notify() is called, the deadline passes or a stop is requested. It may
  /// return early: check the condition again. If notify() was called since the last wait, it
  /// returns at once; several such calls count as one.
  /// Thread safety: one thread waits at a time, that of the callbacks.
  /// Blocking: yes.
  virtual void wait_until_notified(clock::time_point deadline) = 0;
  /// Ends that wait, or the next one.
  virtual void notify() = 0;

  /// Starts threads. In the test kit one of them runs at a time, while a callback waits and between
  /// callbacks.
  /// Errors: std::system_error when a thread cannot be started; those already started are ended
  /// first.
  [[nodiscard]] virtual std::unique_ptr<thread_pool> make_thread_pool(std::size_t threads) = 0;

  /// What runs the shard in virtual time. By default null: the shard runs in real time.
  /// Lifetime: the service's.
  [[nodiscard]] virtual virtual_scheduler* scheduler() noexcept;

  /// A form of kclxx/processing.hpp decides which records are complete, as with
  /// checkpoint_mode::manual, whatever record_processor::mode returns: a processor that calls the
  /// form's functions need not know that.
  /// Thread safety: the thread of the callbacks only.
  void track_completion() noexcept { is_completion_tracked_ = true; }
  [[nodiscard]] bool is_completion_tracked() const noexcept { return is_completion_tracked_; }

  /// See shard_context::fail, which has checked the argument.
  virtual void fail(std::exception_ptr thrown) = 0;

  /// See shard_context::request_worker_stop. By default a warning in the log: there is no daemon.
  virtual void request_worker_stop();

  /// See shard_context::log.
  virtual void log(log_level level, const std::string& text,
                   const std::optional<sequence_position>& position = std::nullopt) = 0;

  /// Sends an event of this shard to run_options::observers. By default to none.
  /// Blocking: no.
  virtual void observe(observer::shard_event event) noexcept;
  /// False when nobody receives events, so that none need be made.
  [[nodiscard]] virtual bool is_observed() const noexcept;

 private:
  bool is_completion_tracked_ = false;
};

/// How the library gets at the service of a shard_context or a checkpointer, and gives one to a
/// shard_context.
struct service_access {
  template <class Handle>
  [[nodiscard]] static const std::shared_ptr<shard_service>& of(const Handle& handle) noexcept {
    return handle.service_;
  }
  template <class Context>
  [[nodiscard]] static std::unique_ptr<Context> make(typename Context::fields values,
                                                     std::shared_ptr<shard_service> service) {
    return std::unique_ptr<Context>(new Context(std::move(values), std::move(service)));
  }
  /// A checkpointer, as callbacks get it.
  template <class Handle>
  [[nodiscard]] static Handle handle_of(std::shared_ptr<shard_service> service) {
    return Handle(std::move(service));
  }
  /// A context of the same shard.
  template <class Context>
  [[nodiscard]] static std::unique_ptr<Context> copy(const Context& shard) {
    return make<Context>(shard.fields_, shard.service_);
  }
};

}  // namespace detail

}  // namespace kclxx
