// SPDX-License-Identifier: Apache-2.0
// The forms that a coroutine handler may have, and the processor that calls it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 107700
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#endif

#include <kclxx/asio_timer.hpp>
#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::asio::detail {

/// What coroutines run on: the io_context of a context_thread, or the program's own executor.
using executor_type = boost::asio::any_io_executor;

// What a handler may be. The record is taken by reference or by value: a reference converts.
template <class Handler>
concept takes_record = std::is_invocable_r_v<boost::asio::awaitable<void>, Handler&, const record&>;
template <class Handler>
concept takes_record_and_shard = std::is_invocable_r_v<boost::asio::awaitable<void>, Handler&,
                                                       const record&, const shard_context&>;
// A function may be both: a generic lambda with a variable number of parameters, for instance.
template <class Handler>
concept handles_record = takes_record<Handler> || takes_record_and_shard<Handler>;
// Called once for each shard. The executor is what the coroutines of that shard run on.
template <class Handler>
concept makes_handler = std::is_invocable_v<Handler&, const shard_context&, executor_type> &&
    handles_record<std::invoke_result_t<Handler&, const shard_context&, executor_type>>;

/// A handler of the program, whatever its type, so that the code behind it is compiled once for all
/// handlers. Called where the coroutine is to run.
/// Errors: what the handler throws before it makes the coroutine, when it is a plain function.
/// Lifetime: the function, the record and the shard must outlive the coroutine, which refers to
/// them.
using coroutine_handler =
    std::function<boost::asio::awaitable<void>(const record&, const shard_context&)>;

/// A handler of both forms is called with the record alone.
template <class Handler>
coroutine_handler held(std::shared_ptr<Handler> handler) {
  return [handler = std::move(handler)](
             const record& event, const shard_context& shard) -> boost::asio::awaitable<void> {
    if constexpr (takes_record<Handler>) {
      return (*handler)(event);
    } else {
      return (*handler)(event, shard);
    }
  };
}

/// The handler that the program has passed to `parallel`, or the function that makes it.
struct handler_source {
  /// The handler of a shard that starts.
  /// Errors: what the program's function throws.
  /// Thread safety: shards may start at the same time; the program's function must allow for that.
  std::function<coroutine_handler(const shard_context&, const executor_type&)> make;
  /// Each shard gets a handler of its own, which belongs to the shard's executor.
  bool makes_handlers = false;
};

/// Errors: std::invalid_argument for an empty function; what moving or copying the handler throws.
template <class Handler>
handler_source source_of(Handler&& handler) {
  using stored = std::decay_t<Handler>;
  kclxx::detail::require_function<stored>(handler);
  auto shared = std::make_shared<stored>(std::forward<Handler>(handler));
  if constexpr (makes_handler<stored>) {
    using handler_of_shard = std::remove_cvref_t<
        std::invoke_result_t<stored&, const shard_context&, const executor_type&>>;
    return {[shared](const shard_context& shard, const executor_type& executor) {
              auto made_handler = std::make_shared<handler_of_shard>((*shared)(shard, executor));
              kclxx::detail::require_function<handler_of_shard>(*made_handler);
              return held(std::move(made_handler));
            },
            true};
  } else {
    return {[handler = held(std::move(shared))](const shard_context&, const executor_type&) {
              return handler;
            },
            false};
  }
}

/// What runs the shard in virtual time; null in real time.
inline kclxx::detail::virtual_scheduler* scheduler_of(const shard_context& shard) {
  return kclxx::detail::service_access::of(shard)->scheduler();
}

/// The io_context of one shard, and the only thread that runs it, so that the coroutines of the
/// shard need no lock. In virtual time the shard's scheduler runs it.
///
/// Errors: an exception that leaves a function on the io_context, such as a completion handler of
/// the program's, goes to shard_context::fail; the thread continues.
/// Thread safety: executor() may be called from any thread.
/// Lifetime: the shard_context must outlive it. Functions that were posted and have not run are
/// destroyed with it, so nothing may still wait for them.
class context_thread final {
 public:
  /// Errors: std::system_error when the thread cannot be started.
  explicit context_thread(const shard_context& shard)
      : shard_(shard),
        scheduler_(scheduler_of(shard)),
        work_(boost::asio::make_work_guard(context_)) {
    if (scheduler_ == nullptr) {
      thread_ = std::thread([this] { run(); });
    } else {
      timers_ = &boost::asio::use_service<virtual_timers>(context_);
      timers_->follow(shard);
      adopted_ =
          scheduler_->adopt({[this] { return run_one(); }, [this] { return timers_->next(); }});
    }
  }
  context_thread(const context_thread&) = delete;
  context_thread& operator=(const context_thread&) = delete;
  /// Functions that still wait are destroyed, and not called.
  /// Blocking: until the function that runs has returned.
  ~context_thread() {
    if (scheduler_ != nullptr) {
      adopted_.reset();
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      context_.stop();
    }
    thread_.join();
  }
  /// Lifetime: an executor must not be used after this object's end.
  [[nodiscard]] boost::asio::any_io_executor executor() { return context_.get_executor(); }
  /// What runs the io_context in virtual time; null in real time.
  [[nodiscard]] kclxx::detail::virtual_scheduler* scheduler() const noexcept { return scheduler_; }

 private:
  /// On the thread, until the destructor stops the io_context.
  void run() {
    for (;;) {
      try {
        context_.run();
        if (is_ending()) return;
        throw std::runtime_error(stopped);
      } catch (...) {
        shard_.fail(std::current_exception());
      }
    }
  }
  /// Runs a function in virtual time. A crash of the child in it ends that function alone.
  bool run_one() {
    try {
      timers_->end_waits(timers_->now());
      const bool has_run = context_.poll_one() > 0;
      if (!context_.stopped()) return has_run;
      context_.restart();
      throw std::runtime_error(stopped);
    } catch (const kclxx::detail::process_ended&) {  // NOLINT(bugprone-empty-catch): it has ended
    } catch (...) {
      shard_.fail(std::current_exception());
    }
    return true;
  }

  /// Whether the destructor has stopped the io_context. If not, the program has: then the
  /// io_context is restarted, since the shard's end needs it.
  bool is_ending() {
    const std::lock_guard lock(mutex_);
    if (!is_ending_) context_.restart();
    return is_ending_;
  }

  static constexpr const char* stopped = "the shard's io_context was stopped by the program";

  const shard_context& shard_;
  kclxx::detail::virtual_scheduler* const scheduler_;
  // Guards is_ending_, so that no restart follows the destructor's stop.
  std::mutex mutex_;
  bool is_ending_ = false;
  boost::asio::io_context context_{1};
  // Without it run() would return as soon as no coroutine waits.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;  // in real time
  // In virtual time.
  virtual_timers* timers_ = nullptr;
  std::shared_ptr<void> adopted_;
};

/// The coroutines of one shard: they can be cancelled and waited for. Cancellation reaches them
/// through a boost::asio::cancellation_signal each.
///
/// 1. start() each coroutine.
/// 2. cancel(), when a stop is requested. A coroutine that is started later is cancelled as it
///    begins.
/// 3. wait(), before the objects to which the coroutines refer are destroyed, or keep() these. No
///    start() may follow.
///
/// Thread safety: all functions may be called from any thread.
/// Lifetime: held by a std::shared_ptr; a coroutine that runs keeps it alive.
class coroutines : public std::enable_shared_from_this<coroutines> {
 public:
  /// Runs `function`, which makes the coroutine, and calls `ended` with what it threw: a null
  /// pointer when it returned. Both run on `executor`. Asio may destroy both uncalled, with what
  /// the coroutine waits for or with the executor: that ends the coroutine, too.
  ///
  /// `executor` must run one function at a time, as a strand does: the state of a coroutine has no
  /// lock.
  /// Errors: std::bad_alloc.
  /// Blocking: no. The coroutine does not begin within this call.
  template <class Function, class Ended>
  void start(const boost::asio::any_io_executor& executor, Function function, Ended ended) {
    // Known to cancel() and wait() before it begins.
    auto added = std::make_shared<entry>(executor);
    end_function<Ended> end{registration(shared_from_this(), added), std::move(ended)};
    // Only `ended` gets the exception: co_spawn would keep a reference, and release it while
    // another thread uses the exception.
    auto body = [added, function = std::move(function)]() mutable -> boost::asio::awaitable<void> {
      try {
        co_await function();
      } catch (...) {
        added->thrown = std::current_exception();
      }
    };
    // co_spawn fills the slot, which belongs to the executor.
    boost::asio::post(executor, [self = shared_from_this(), added, body = std::move(body),
                                 end = std::move(end)]() mutable {
#if BOOST_VERSION >= 107700
      boost::asio::co_spawn(
          added->on, std::move(body),
          boost::asio::bind_cancellation_slot(added->signal.slot(), std::move(end)));
      if (self->is_cancelled()) cancel(*added);  // an earlier signal had nobody to reach
#else
      boost::asio::co_spawn(added->on, std::move(body), std::move(end));
#endif
    });
  }

  /// Cancels every coroutine that runs now or is started later; without effect before Boost 1.77,
  /// whose coroutines cannot be cancelled.
  /// Blocking: no. It returns before the coroutines have noticed.
  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& running : all_) {
      boost::asio::post(running->on, [running] { cancel(*running); });
    }
  }

  [[nodiscard]] bool is_empty() {
    const std::lock_guard lock(mutex_);
    return all_.empty();
  }

  /// Waits for the coroutines; without cancel() that can take as long as the program's code does.
  /// Blocking: until all have ended, or for `time`. So not on a thread that runs them.
  [[nodiscard]] bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return is_empty_.wait_for(lock, time, [this] { return all_.empty(); });
  }

  /// Keeps the contents until the last coroutine has ended, or is destroyed with its execution
  /// context.
  void keep(std::shared_ptr<void> contents) {
    const std::lock_guard lock(mutex_);
    kept_ = std::move(contents);
  }

 private:
  /// A coroutine, from start() to its end. Shared by `all_`, by the functions that wait on the
  /// executor, and by the coroutine.
  struct entry {
    explicit entry(const boost::asio::any_io_executor& executor) : on(executor) {}
    // A strand, or the only thread of a context_thread.
    boost::asio::any_io_executor on;
    // Asio may destroy the coroutine on any thread.
    std::atomic<bool> has_ended = false;
    // The members below belong to the executor, which runs one function of the coroutine at a time.
    // So they need no lock, and cancel() posts the function that emits the signal.
    std::exception_ptr thrown;  // until `ended` takes it
#if BOOST_VERSION >= 107700
    boost::asio::cancellation_signal signal{};
#endif
  };

  /// In `all_`, from its construction until its end: that of the function that holds it, whether
  /// Asio calls that function or only destroys it.
  class registration {
   public:
    registration(std::shared_ptr<coroutines> all, std::shared_ptr<entry> added)
        : all_(std::move(all)), added_(std::move(added)) {
      const std::lock_guard lock(all_->mutex_);
      all_->all_.insert(added_);
    }
    registration(registration&&) noexcept = default;
    registration(const registration&) = delete;
    registration& operator=(const registration&) = delete;
    registration& operator=(registration&&) = delete;
    ~registration() {
      if (!added_) return;
      added_->has_ended = true;
      all_->remove(added_);
    }
    [[nodiscard]] entry& coroutine() const { return *added_; }

   private:
    std::shared_ptr<coroutines> all_;
    std::shared_ptr<entry> added_;
  };

  /// What co_spawn calls at the coroutine's end. Its members end in this order: `ended`, which has
  /// the program's objects, then `known`.
  template <class Ended>
  struct end_function {
    registration known;
    Ended ended;
    void operator()(std::exception_ptr not_begun) {
      known.coroutine().has_ended = true;
      ended(not_begun ? std::move(not_begun) : std::move(known.coroutine().thrown));
    }
  };

  /// Called last for a coroutine. wait() may return after it.
  void remove(const std::shared_ptr<entry>& gone) {
    const std::lock_guard lock(mutex_);
    all_.erase(gone);
    if (all_.empty()) is_empty_.notify_all();
  }

  /// Asked on the executor, when cancel() may have run since start().
  bool is_cancelled() {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  /// On the executor: a signal may be emitted only where its coroutine runs, and only until the
  /// coroutine has ended.
  static void cancel([[maybe_unused]] entry& coroutine) {
#if BOOST_VERSION >= 107700
    if (!coroutine.has_ended) coroutine.signal.emit(boost::asio::cancellation_type::all);
#endif
  }

  // Guards the members below. It is not held while code of the program runs.
  std::mutex mutex_;
  std::condition_variable is_empty_;
  // The coroutines that were started and have not ended. wait() waits until there is none.
  std::unordered_set<std::shared_ptr<entry>> all_;
  // Never reset: the shard is over.
  bool is_cancelled_ = false;
  std::shared_ptr<void> kept_;
};

/// How often a wait looks whether the io_context has stopped: stop() notifies nobody.
inline constexpr std::chrono::milliseconds stop_period{200};

/// False for an executor that is not an io_context's own.
inline bool has_stopped(const boost::asio::any_io_executor& executor) {
  const auto* const on = executor.target<boost::asio::io_context::executor_type>();
  return on != nullptr && boost::asio::query(*on, boost::asio::execution::context).stopped();
}

/// On an io_context of the program's own that has stopped, no coroutine would ever run.
/// Errors: std::runtime_error then.
inline void require_running(const boost::asio::any_io_executor& executor) {
  if (!has_stopped(executor)) return;
  throw std::runtime_error(
      "the io_context of asio::parallel has stopped; run it until kclxx::run has returned");
}

/// kclxx::parallel with completions, whose handler starts a coroutine. The inner processor has the
/// window, the retries and the checkpoints; this one has the executor and the coroutines. When a
/// stop is requested, the coroutines are cancelled. The destructor waits for them.
///
/// Lifetime: the shard_context must outlive it, and an executor of the program's own must run until
/// it is destroyed. When its io_context has stopped, the session ends, and what the coroutines
/// refer to is kept until the io_context is destroyed.
class processor final : public record_processor {
 public:
  /// Errors: those of kclxx::parallel's factory; what is thrown by the program's function that
  /// makes a handler; std::system_error when the thread of the io_context cannot be started.
  processor(handler_source source, const failure_policy& policy, const parallel_options& options,
            const std::optional<executor_type>& executor, const shard_context& shard)
      : source_(std::move(source)) {
    if (!executor) {
      own_.emplace(shard);
    } else if (scheduler_of(shard) != nullptr) {
      throw std::logic_error(
          "asio::parallel on an executor of the program's own cannot run in the test kit's virtual "
          "time: leave the executor out");
    }
    executor_ = executor ? *executor : own_->executor();
    require_running(executor_);
    std::function<void()> check_wait;
    if (executor) {
      work_ = boost::asio::prefer(*executor, boost::asio::execution::outstanding_work.tracked);
      check_wait = [own = *executor] { require_running(own); };
    }
    shard_ = kclxx::detail::service_access::copy(shard);
    const auto make = [this](const shard_context&) {
      handler_ = std::make_shared<const coroutine_handler>(source_.make(*shard_, executor_));
      return [this](completion done) { start(std::move(done)); };
    };
    inner_ =
        kclxx::detail::parallel_with_check(make, policy, options, std::move(check_wait))(*shard_);
    cancel_.emplace(shard.stop_token(), [running = running_] { running->cancel(); });
  }
  /// The order matters: a coroutine refers to the handler, and the handler to the executor.
  /// Blocking: until all coroutines have ended; they are cancelled. Or until the program's
  /// io_context has stopped.
  ~processor() override {
    inner_.reset();  // completions have no effect from now on
    cancel_.reset();
    running_->cancel();
    if (auto* const scheduler = own_ ? own_->scheduler() : nullptr) {
      if (!scheduler->run_until([this] { return running_->is_empty(); })) {
        keep_what_coroutines_use();
      }
      return;
    }
    while (!running_->wait(stop_period)) {
      if (!is_abandoned()) continue;
      keep_what_coroutines_use();
      return;
    }
    if (source_.makes_handlers) destroy_handler();
  }

  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    require_running(executor_);
    inner_->process_records(std::move(batch), checkpointer);
  }
  void lease_lost() override { inner_->lease_lost(); }
  void shard_ended(const checkpointer& checkpointer) override { inner_->shard_ended(checkpointer); }
  void shutdown_requested(const checkpointer& checkpointer) override {
    inner_->shutdown_requested(checkpointer);
  }

 private:
  /// The handler of the inner processor: begins the coroutine of one record, which reports to
  /// `done` when it ends.
  void start(completion done) {
    // Several threads may run the program's executor; a strand lets one at a time run a coroutine.
    const executor_type executor =
        own_ ? executor_ : executor_type(boost::asio::make_strand(executor_));
    // The completion keeps the record, and is kept until the coroutine has ended. Completions
    // outlive the inner processor, so the record is there while the destructor waits, too.
    const record& event = done.record();
    running_->start(
        executor,
        [handler = handler_.get(), shard = shard_.get(), &event] {
          return (*handler)(event, *shard);
        },
        [done = std::move(done)](std::exception_ptr thrown) mutable {
          thrown ? done.fail(std::move(thrown)) : done.complete();
        });
  }
  /// The handler's members, connections for instance, belong to the executor.
  /// Blocking: until the executor has destroyed it, or the program's io_context has stopped.
  void destroy_handler() {
    std::promise<void> destroyed;
    const auto is_destroyed = destroyed.get_future();
    boost::asio::post(executor_,
                      [handler = std::move(handler_), destroyed = std::move(destroyed)]() mutable {
                        handler.reset();
                        destroyed.set_value();
                      });
    while (is_destroyed.wait_for(stop_period) != std::future_status::ready) {
      if (is_abandoned()) return;
    }
  }
  /// A shard's own io_context is restarted.
  [[nodiscard]] bool is_abandoned() const { return !own_ && has_stopped(executor_); }

  /// The program's io_context destroys the coroutines, or runs them once more.
  void keep_what_coroutines_use() {
    running_->keep(
        std::make_shared<std::tuple<decltype(source_), decltype(shard_), decltype(handler_)>>(
            source_, shard_, handler_));
  }

  handler_source source_;  // other shards' processors have it, too
  // Coroutines may outlive inner_.
  std::shared_ptr<shard_context> shard_;
  // Ends after all that runs on it. Empty with an executor of the program's own.
  std::optional<context_thread> own_;
  executor_type executor_;
  executor_type work_;  // the program's io_context does not return for want of it
  std::shared_ptr<const coroutine_handler> handler_;
  std::shared_ptr<coroutines> running_ = std::make_shared<coroutines>();
  // It may call start() as soon as it is made. So the members that start() uses are declared before
  // it, and outlive it: see the destructor.
  std::unique_ptr<record_processor> inner_;
  std::optional<std::stop_callback<std::function<void()>>> cancel_;
};

/// The factory that kclxx::asio::parallel returns. Without an executor each shard gets a
/// context_thread.
inline processor_factory make(handler_source source, failure_policy policy,
                              parallel_options options, std::optional<executor_type> executor) {
  // kclxx::parallel refuses what is wrong with the policy and the options.
  if (auto refusing = kclxx::parallel([](completion) {}, policy, options); !refusing.is_valid())
    return refusing;
  return [source = std::move(source), policy = std::move(policy), options = std::move(options),
          executor = std::move(executor)](const shard_context& shard) {
    return std::make_unique<processor>(source, policy, options, executor, shard);
  };
}

}  // namespace kclxx::asio::detail
