// SPDX-License-Identifier: Apache-2.0
// The forms that a coroutine handler may have, and how each is called.
#pragma once

#include <type_traits>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

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

/// The handler of a shard that starts: what the program's function makes for it, or the function
/// itself, which all shards share.
/// Errors: what the program's function throws.
/// Thread safety: shards may start at the same time; the program's function must allow for that.
/// Lifetime: a reference to `handler`, unless a new one is made.
template <class Handler>
decltype(auto) make_handler(Handler& handler, const shard_context& shard,
                            const executor_type& executor) {
  if constexpr (makes_handler<Handler>) {
    return handler(shard, executor);
  } else {
    return handler;
  }
}

/// The coroutine for one record; it has not begun to run. A handler of both forms is called
/// with the record alone.
/// Errors: what the handler throws before it makes the coroutine, when it is a plain function.
/// Thread safety: called where the coroutine is to run.
/// Lifetime: `handler`, `record` and `shard` must outlive the coroutine, which refers to them.
template <class Handler>
boost::asio::awaitable<void> call(Handler& handler, const kclxx::record& record,
                                  const shard_context& shard) {
  if constexpr (takes_record<Handler>) {
    return handler(record);
  } else {
    return handler(record, shard);
  }
}

}  // namespace kclxx::asio::detail
