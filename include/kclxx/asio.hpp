// SPDX-License-Identifier: Apache-2.0
// Coroutines and completion tokens of the program's own Boost.Asio (1.74 or newer). Header-only,
// and not included by kclxx.hpp: a program that includes it needs Boost's headers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/system/error_code.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 107700
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#endif

#include <kclxx/checkpointer.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_processor.hpp>

namespace kclxx::asio {

namespace detail {

using executor_type = boost::asio::any_io_executor;

template <class Handler>
concept takes_record = std::is_invocable_r_v<boost::asio::awaitable<void>, Handler&, const record&>;
template <class Handler>
concept takes_record_and_shard = std::is_invocable_r_v<boost::asio::awaitable<void>, Handler&,
                                                       const record&, const shard_context&>;
template <class Handler>
concept handles_record = takes_record<Handler> || takes_record_and_shard<Handler>;
template <class Handler>
concept makes_handler = std::is_invocable_v<Handler&, const shard_context&, executor_type> &&
    handles_record<std::invoke_result_t<Handler&, const shard_context&, executor_type>>;

/// The coroutines of one shard: they can be cancelled and waited for.
/// Thread safety: all functions may be called from any thread.
class coroutines : public std::enable_shared_from_this<coroutines> {
 public:
  /// Runs `function`, which makes the coroutine, and calls `ended` with what it threw.
  template <class Function, class Ended>
  void start(const executor_type& on, Function function, Ended ended) {
    const auto added = std::make_shared<one>(on);
    {
      const std::lock_guard lock(mutex_);
      all_.insert(added);
    }
    // What it threw belongs to `ended` alone: co_spawn would keep it, too, and would destroy it
    // when another thread has it already.
    auto body = [added, function = std::move(function)]() mutable -> boost::asio::awaitable<void> {
      try {
        co_await function();
      } catch (...) {
        added->thrown = std::current_exception();
      }
    };
    auto end = [self = shared_from_this(), added,
                ended = std::move(ended)](std::exception_ptr not_begun) mutable {
      added->has_ended = true;
      ended(not_begun ? std::move(not_begun) : std::move(added->thrown));
      self->remove(added);
    };
    // co_spawn fills the slot, which belongs to the executor.
    boost::asio::post(on, [self = shared_from_this(), added, body = std::move(body),
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

  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const auto& each : all_) {
      boost::asio::post(each->on, [each] { cancel(*each); });
    }
  }

  /// Blocking: until all have ended.
  void wait() {
    std::unique_lock lock(mutex_);
    is_empty_.wait(lock, [this] { return all_.empty(); });
  }

 private:
  struct one {
    explicit one(const executor_type& executor) : on(executor) {}
    executor_type on;
    // What follows belongs to the executor, which runs one function of the coroutine at a time.
    bool has_ended = false;
    std::exception_ptr thrown;
#if BOOST_VERSION >= 107700
    boost::asio::cancellation_signal signal{};
#endif
  };

  void remove(const std::shared_ptr<one>& gone) {
    const std::lock_guard lock(mutex_);
    all_.erase(gone);
    if (all_.empty()) is_empty_.notify_all();
  }

  bool is_cancelled() {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }

  /// On the executor.
  static void cancel([[maybe_unused]] one& which) {
#if BOOST_VERSION >= 107700
    if (!which.has_ended) which.signal.emit(boost::asio::cancellation_type::all);
#endif
  }

  std::mutex mutex_;
  std::condition_variable is_empty_;
  std::unordered_set<std::shared_ptr<one>> all_;
  bool is_cancelled_ = false;
};

/// An io_context and the thread that runs it. An exception that leaves a function there, such as a
/// completion handler of the program's, is treated like one from a timer of the shard.
class context_thread {
 public:
  explicit context_thread(const shard_context& shard)
      : work_(boost::asio::make_work_guard(context_)), thread_([this, &shard] { run(shard); }) {}
  context_thread(const context_thread&) = delete;
  context_thread& operator=(const context_thread&) = delete;
  /// What still waits is destroyed.
  ~context_thread() {
    context_.stop();
    thread_.join();
  }
  [[nodiscard]] executor_type executor() { return context_.get_executor(); }

 private:
  void run(const shard_context& shard) {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (...) {
        shard.after(std::chrono::milliseconds(0),
                    [thrown = std::current_exception()] { std::rethrow_exception(thrown); });
      }
    }
  }

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

template <class Handler>
decltype(auto) make_handler(Handler& handler, const shard_context& shard,
                            const executor_type& executor) {
  if constexpr (makes_handler<Handler>) {
    return handler(shard, executor);
  } else {
    return handler;  // shards share it
  }
}

template <class Handler>
boost::asio::awaitable<void> call(Handler& handler, const record& what,
                                  const shard_context& shard) {
  if constexpr (takes_record<Handler>) {
    return handler(what);
  } else {
    return handler(what, shard);
  }
}

/// kclxx::parallel with completions, whose handler starts a coroutine.
template <class Handler>
class processor final : public record_processor {
 public:
  processor(std::shared_ptr<Handler> shared, const failure_policy& policy,
            const parallel_options& options, const std::optional<executor_type>& executor,
            const shard_context& shard)
      : shared_(std::move(shared)), shard_(shard) {
    if (!executor) own_.emplace(shard);
    executor_ = executor ? *executor : own_->executor();
    handler_.emplace(make_handler(*shared_, shard, executor_));
    inner_ = kclxx::parallel([this](completion done) { start(std::move(done)); }, policy,
                             options)(shard);
    cancel_.emplace(shard.stop_token(), cancel_function{running_});
  }
  ~processor() override {
    inner_.reset();  // completions have no effect from now on
    cancel_.reset();
    running_->cancel();
    running_->wait();
    if constexpr (makes_handler<Handler>) destroy_handler();
  }

  void process_records(record_batch batch, const checkpointer& with) override {
    inner_->process_records(std::move(batch), with);
  }
  void lease_lost() override { inner_->lease_lost(); }
  void shard_ended(const checkpointer& with) override { inner_->shard_ended(with); }
  void shutdown_requested(const checkpointer& with) override { inner_->shutdown_requested(with); }

 private:
  using handler_type = std::remove_cvref_t<decltype(make_handler(
      std::declval<Handler&>(), std::declval<const shard_context&>(),
      std::declval<const executor_type&>()))>;
  using stored_handler =
      std::conditional_t<makes_handler<Handler>, handler_type, std::reference_wrapper<Handler>>;
  struct cancel_function {
    std::shared_ptr<coroutines> which;
    void operator()() const { which->cancel(); }
  };

  void start(completion done) {
    // Several threads may run the program's executor, but not one coroutine.
    const executor_type on = own_ ? executor_ : executor_type(boost::asio::make_strand(executor_));
    // The completion keeps the record, and is kept until the coroutine has ended.
    const record& what = done.record();
    running_->start(
        on, [this, &what] { return call(handler(), what, shard_); },
        [done = std::move(done)](std::exception_ptr thrown) mutable {
          thrown ? done.fail(std::move(thrown)) : done.complete();
        });
  }
  handler_type& handler() { return *handler_; }
  /// What it has, connections for instance, belongs to the executor.
  void destroy_handler() {
    std::promise<void> destroyed;
    boost::asio::post(executor_, [&] {
      handler_.reset();
      destroyed.set_value();
    });
    destroyed.get_future().wait();
  }

  std::shared_ptr<Handler> shared_;
  const shard_context& shard_;
  std::optional<context_thread> own_;  // ends after all that runs on it
  executor_type executor_;
  std::optional<stored_handler> handler_;
  std::shared_ptr<coroutines> running_ = std::make_shared<coroutines>();
  std::unique_ptr<record_processor> inner_;
  std::optional<std::stop_callback<cancel_function>> cancel_;
};

template <class Handler>
processor_factory make(Handler&& handler, failure_policy policy, parallel_options options,
                       std::optional<executor_type> executor) {
  using stored = std::decay_t<Handler>;
  return {[shared = std::make_shared<stored>(std::forward<Handler>(handler)),
           policy = std::move(policy), options = std::move(options),
           executor = std::move(executor)](const shard_context& shard) {
            return std::make_unique<processor<stored>>(shared, policy, options, executor, shard);
          },
          checkpoint_mode::manual};
}

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"  // of Boost's category
#endif
/// A category of ours for versions of Boost that cannot keep a std::error_code.
template <class Base>
class boost_category final : public Base {
 public:
  explicit boost_category(const std::error_category& from) : from_(from) {}
  [[nodiscard]] const char* name() const noexcept override { return from_.name(); }
  [[nodiscard]] std::string message(int value) const override { return from_.message(value); }

 private:
  const std::error_category& from_;
};
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

template <class Code = boost::system::error_code>
Code to_boost(const std::error_code& ec) {
  if (!ec) return {};
  if constexpr (std::is_constructible_v<Code, const std::error_code&>) {
    return Code(ec);
  } else {
    using category = boost_category<boost::system::error_category>;
    static const category local(local_category());
    static const category daemon(checkpoint_category());
    return Code(ec.value(), ec.category() == local_category() ? local : daemon);
  }
}

}  // namespace detail

/// The processor factory of a program whose handler is a coroutine:
///
///     boost::asio::awaitable<void> handle(kclxx::record event, const kclxx::shard_context& shard);
///     return kclxx::run(kclxx::asio::parallel(handle, policy, {.lanes = 64}));
///
/// The handler is `awaitable<void>(const record&)` or `awaitable<void>(const record&, const
/// shard_context&)`, the record by value or by reference. Or `(const shard_context&,
/// any_io_executor) -> Handler`, which is called once for each shard, for instance to open a
/// connection. The record is complete when the coroutine returns. What it throws is a failure.
///
/// parallel_options::lanes bounds how many coroutines there are at the same time. A coroutine that
/// waits uses no thread, so a larger value than the default often helps.
///
/// Each shard has an io_context and one thread that runs it, so its coroutines need no lock. An
/// exception that leaves a function of its own there is treated like one from a timer.
///
/// Cancellation: when a stop is requested (shard_context::stop_token), coroutines are cancelled
/// (with Boost 1.77 or newer: cancellation_type::all, of which coroutines accept terminal by
/// default). The processor's destructor waits until they have ended. Errors: as kclxx::parallel.
template <class Handler>
requires(detail::handles_record<std::decay_t<Handler>> ||
         detail::makes_handler<std::decay_t<Handler>>) [[nodiscard]] processor_factory
    parallel(Handler&& handler, failure_policy policy = {}, parallel_options options = {}) {
  return detail::make(std::forward<Handler>(handler), std::move(policy), std::move(options),
                      std::nullopt);
}

/// The same on an executor of the program's own, which must run until the session is over. Each
/// coroutine has a strand; several of them run at the same time if the executor has several
/// threads.
template <class Handler>
requires(detail::handles_record<std::decay_t<Handler>> ||
         detail::makes_handler<std::decay_t<Handler>>) [[nodiscard]] processor_factory
    parallel(Handler&& handler, failure_policy policy, parallel_options options,
             boost::asio::any_io_executor executor) {
  return detail::make(std::forward<Handler>(handler), std::move(policy), std::move(options),
                      std::move(executor));
}

/// checkpointer::async_checkpoint with a completion token: use_awaitable, use_future, a callback.
/// The signature is `void(boost::system::error_code)`; the code is empty when the target or a later
/// position is persisted. With Boost 1.81 or newer it converts back to the original
/// std::error_code: `std::error_code(ec) == kclxx::checkpoint_condition::lease_gone`.
///
/// The handler is posted to its associated executor. Until then the operation counts as outstanding
/// work of that executor. Blocking: no. On an idle shard it can take hours: the daemon reads a
/// child only while a callback is open.
template <class CompletionToken>
auto async_checkpoint(const checkpointer& with, const checkpoint_target& target,
                      CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      [](auto handler, const checkpointer& on, const checkpoint_target& up_to) {
        auto work = boost::asio::make_work_guard(boost::asio::get_associated_executor(handler));
        on.async_checkpoint(up_to, [handler = std::move(handler),
                                    work = std::move(work)](std::error_code ec) mutable {
          boost::asio::post(work.get_executor(), [handler = std::move(handler), ec]() mutable {
            std::move(handler)(detail::to_boost(ec));
          });
          work.reset();
        });
      },
      token, with, target);
}

}  // namespace kclxx::asio
