// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>

#include <kclxx/detail/asio_context_thread.hpp>
#include <kclxx/detail/asio_coroutines.hpp>
#include <kclxx/detail/asio_handler.hpp>
#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_processor.hpp>

namespace kclxx::asio::detail {

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

/// The shard's service in real time, but for a callback that waits for coroutines: the wait throws
/// when the program's io_context has stopped.
class stopped_context_service final : public kclxx::detail::shard_service {
 public:
  using position = std::optional<sequence_position>;

  stopped_context_service(std::shared_ptr<kclxx::detail::shard_service> inner,
                          boost::asio::any_io_executor executor)
      : inner_(std::move(inner)), executor_(std::move(executor)) {}

  void wait_until_notified(clock::time_point deadline) override {
    require_running(executor_);
    inner_->wait_until_notified(std::min(deadline, now() + stop_period));
  }

  void async_checkpoint(const position& target, checkpoint_handler handler) override {
    inner_->async_checkpoint(target, std::move(handler));
  }
  std::error_code checkpoint(const position& target,
                             const std::optional<clock::time_point>& deadline) override {
    return inner_->checkpoint(target, deadline);
  }
  [[nodiscard]] clock::time_point now() const override { return inner_->now(); }
  [[nodiscard]] std::chrono::system_clock::time_point date() const override {
    return inner_->date();
  }
  bool sleep_until(clock::time_point deadline) override { return inner_->sleep_until(deadline); }
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override {
    return inner_->start_timer(delay, period, std::move(function));
  }
  void cancel_timer(timer_id timer) override { inner_->cancel_timer(timer); }
  void notify() override { inner_->notify(); }
  [[nodiscard]] std::unique_ptr<kclxx::detail::thread_pool> make_thread_pool(
      std::size_t threads) override {
    return inner_->make_thread_pool(threads);
  }
  void track_completion() noexcept override { inner_->track_completion(); }
  void fail(std::exception_ptr thrown) override { inner_->fail(std::move(thrown)); }
  void request_worker_stop() override { inner_->request_worker_stop(); }
  void log(log_level level, const std::string& text, const position& subject) override {
    inner_->log(level, text, subject);
  }
  void observe(observer::shard_event event) noexcept override { inner_->observe(std::move(event)); }
  [[nodiscard]] bool is_observed() const noexcept override { return inner_->is_observed(); }

 private:
  const std::shared_ptr<kclxx::detail::shard_service> inner_;
  const boost::asio::any_io_executor executor_;
};

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
    using kclxx::detail::service_access;
    auto service = service_access::of(shard);
    if (executor) {
      work_ = boost::asio::prefer(*executor, boost::asio::execution::outstanding_work.tracked);
      service = std::make_shared<stopped_context_service>(service, executor_);
    }
    shard_ = service_access::with(shard, std::move(service));
    const auto make = [this](const shard_context&) {
      handler_ = std::make_shared<const coroutine_handler>(source_.make(*shard_, executor_));
      return [this](completion done) { start(std::move(done)); };
    };
    inner_ = kclxx::parallel(make, policy, options)(*shard_);
    cancel_.emplace(shard.stop_token(), cancel_function{running_});
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
  struct cancel_function {
    std::shared_ptr<coroutines> running;
    void operator()() const { running->cancel(); }
  };

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
  // With the waits that notice an io_context that has stopped. Coroutines may outlive inner_.
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
  std::optional<std::stop_callback<cancel_function>> cancel_;
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
