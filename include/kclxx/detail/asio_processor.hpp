// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <kclxx/detail/asio_coroutines.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_processor.hpp>

namespace kclxx::asio::detail {

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

}  // namespace kclxx::asio::detail
