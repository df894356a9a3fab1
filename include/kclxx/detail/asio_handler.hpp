// SPDX-License-Identifier: Apache-2.0
// The forms that a coroutine handler may have, and how each is called.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <kclxx/processing/handler.hpp>
#include <kclxx/record.hpp>
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

}  // namespace kclxx::asio::detail
