// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <kclxx/detail/asio_error.hpp>

namespace kclxx::asio::detail {

/// The completion handlers of async_checkpoint that wait for the library, in the execution context
/// that they will run in. A context that is destroyed destroys them, as it does with all that waits
/// in it, and nothing is posted to it any more.
class pending_checkpoints final : public boost::asio::execution_context::service {
 public:
  static inline boost::asio::execution_context::id id;
  explicit pending_checkpoints(boost::asio::execution_context& owner) : service(owner) {}

  /// Returns the function that posts the handler, with the outcome; to be called at most once, on
  /// any thread, also when the context is gone.
  /// Errors: std::bad_alloc.
  template <class Handler, class Executor>
  auto add(Handler handler, const Executor& executor) {
    const std::uint64_t number =
        all_->add(std::make_unique<posted<Handler, Executor>>(std::move(handler), executor));
    return [all = all_, number](std::error_code ec) { all->post(number, ec); };
  }

 private:
  struct operation {
    operation() = default;
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    virtual ~operation() = default;
    virtual void post(std::error_code ec) = 0;
  };
  template <class Handler, class Executor>
  struct posted final : operation {
    posted(Handler its_handler, const Executor& executor)
        : handler(std::move(its_handler)), work(executor) {}
    void post(std::error_code ec) override {
      boost::asio::post(work.get_executor(), [handler = std::move(handler), ec]() mutable {
        std::move(handler)(to_boost(ec));
      });
    }
    Handler handler;
    boost::asio::executor_work_guard<Executor> work;
  };
  using operations = std::unordered_map<std::uint64_t, std::unique_ptr<operation>>;

  class shared {
   public:
    std::uint64_t add(std::unique_ptr<operation> waiting) {
      const std::lock_guard lock(mutex_);
      if (is_over_) return 0;
      all_.emplace(++last_, std::move(waiting));
      return last_;
    }
    void post(std::uint64_t number, std::error_code ec) {
      const std::shared_lock in_use(context_);
      if (const auto waiting = take(number)) waiting->post(ec);
    }
    void end() {
      operations rest;
      {
        const std::unique_lock unused(context_);
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        rest.swap(all_);
      }
    }

   private:
    std::unique_ptr<operation> take(std::uint64_t number) {
      const std::lock_guard lock(mutex_);
      const auto found = all_.find(number);
      if (found == all_.end()) return nullptr;
      auto waiting = std::move(found->second);
      all_.erase(found);
      return waiting;
    }

    std::shared_mutex context_;  // held while the context is used, and locked first
    std::mutex mutex_;           // held for no call of the program's code
    operations all_;
    std::uint64_t last_ = 0;
    bool is_over_ = false;
  };

  /// Of the context's destructor.
  void shutdown() noexcept override { all_->end(); }

  const std::shared_ptr<shared> all_ = std::make_shared<shared>();
};

/// Those of the context that functions on the executor run in.
template <class Executor>
pending_checkpoints& pending_checkpoints_of(const Executor& executor) {
  boost::asio::execution_context& context =
      boost::asio::query(executor, boost::asio::execution::context);
  return boost::asio::use_service<pending_checkpoints>(context);
}

}  // namespace kclxx::asio::detail
