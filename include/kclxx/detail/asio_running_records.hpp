// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 107700
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#endif

#include <kclxx/checkpointer.hpp>
#include <kclxx/record.hpp>

namespace kclxx::asio::detail {

#if BOOST_VERSION >= 107700
/// The records whose coroutines run in an execution context, none of which is complete. What a
/// coroutine waits for has the cancellation slot of that coroutine.
class running_records final : public boost::asio::execution_context::service {
 public:
  static inline boost::asio::execution_context::id id;
  explicit running_records(boost::asio::execution_context& owner) : service(owner) {}

  /// Runs the coroutine of the record.
  /// Lifetime: the record must outlive the coroutine.
  template <class Function>
  static boost::asio::awaitable<void> run(const record& source, Function function) {
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    const entry registered(of(co_await boost::asio::this_coro::executor), state.slot(), source);
    co_await function();
  }

  /// Whether the handler resumes the coroutine of a record that the target covers: that wait would
  /// never end. A wait in an awaitable operator is not recognised.
  template <class Handler, class Executor>
  [[nodiscard]] static bool waits_for_itself(const Handler& handler, const Executor& executor,
                                             const checkpoint_target& target) {
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    return slot.is_connected() && target.position() && of(executor).has(slot, *target.position());
  }

 private:
  using running = std::pair<boost::asio::cancellation_slot, const record*>;
  struct shared {
    std::mutex mutex;
    std::list<running> all;
  };
  /// In the coroutine, which may be destroyed after the service.
  class entry {
   public:
    entry(const running_records& service, boost::asio::cancellation_slot slot, const record& source)
        : shared_(service.shared_) {
      const std::lock_guard lock(shared_->mutex);
      place_ = shared_->all.insert(shared_->all.end(), {slot, &source});
    }
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;
    ~entry() {
      const std::lock_guard lock(shared_->mutex);
      shared_->all.erase(place_);
    }

   private:
    const std::shared_ptr<shared> shared_;
    std::list<running>::iterator place_;
  };

  template <class Executor>
  static running_records& of(const Executor& executor) {
    return boost::asio::use_service<running_records>(static_cast<boost::asio::execution_context&>(
        boost::asio::query(executor, boost::asio::execution::context)));
  }
  bool has(boost::asio::cancellation_slot slot, const sequence_position& target) const {
    const std::lock_guard lock(shared_->mutex);
    return std::any_of(shared_->all.begin(), shared_->all.end(), [&](const running& one) {
      return one.first == slot && one.second->position() <= target;
    });
  }
  void shutdown() noexcept override {}

  const std::shared_ptr<shared> shared_ = std::make_shared<shared>();
};
#else
/// Coroutines of so old a Boost have no cancellation slot: no wait is recognised.
struct running_records {
  template <class Function>
  static boost::asio::awaitable<void> run(const record&, Function function) {
    return function();
  }
  template <class Handler, class Executor>
  [[nodiscard]] static bool waits_for_itself(const Handler&, const Executor&,
                                             const checkpoint_target&) {
    return false;
  }
};
#endif

}  // namespace kclxx::asio::detail
