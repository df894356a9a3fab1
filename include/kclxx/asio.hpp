// SPDX-License-Identifier: Apache-2.0
// Coroutines of the program's own Boost.Asio (1.74 or newer). Header-only.
// kclxx.hpp does not include it, since this header needs Boost's headers.
// See kclxx/kclxx.hpp for the default contract, and for when an action of the daemon is open.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include <kclxx/asio_timer.hpp>  // IWYU pragma: export
#include <kclxx/detail/asio_processor.hpp>

namespace kclxx::asio {

/// The processor factory of a program whose handler is a coroutine:
///
///     boost::asio::awaitable<void> handle(kclxx::record event, const kclxx::shard_context& shard);
///     return kclxx::run(kclxx::asio::parallel(handle, policy, {.lanes = 64}));
///
/// The handler has the form `awaitable<void>(const record&)` or `awaitable<void>(const record&,
/// const shard_context&)`. It takes the record by value or by reference. A function of the form
/// `(const shard_context&, any_io_executor) -> Handler` is accepted, too: it is called once for
/// each shard and returns the handler, for instance after it has opened a connection. The record is
/// complete when the coroutine returns. An exception from the coroutine is a failure of the record;
/// so is its destruction by Asio, for instance with the io_context of a client that it waits for.
///
/// parallel_options::lanes bounds how many coroutines there are at the same time. A coroutine that
/// waits uses no thread, so a larger value than the default often helps.
///
/// Each shard has an io_context and one thread that runs it. An exception from any other function
/// there goes to shard_context::fail. Stopping the io_context ends the session.
///
/// Coroutines that the handler starts with `detached` are not waited for. They are destroyed with
/// the io_context, after the handler: so their destructors must not use its members.
///
/// Cancellation: when a stop is requested (shard_context::stop_token), each coroutine receives
/// cancellation_type::all. Before Boost 1.77 coroutines cannot be cancelled. The processor's
/// destructor waits until all coroutines have ended.
///
/// Errors: as kclxx::parallel.
/// Thread safety: the coroutines of one shard need no lock among themselves. If a process serves
/// several shards (see `serve`), they call the same handler at the same time, unless a function
/// makes a handler for each shard.
template <class Handler>
requires(detail::handles_record<std::decay_t<Handler>> ||
         detail::makes_handler<std::decay_t<Handler>>) [[nodiscard]] processor_factory
    parallel(Handler&& handler, failure_policy policy = {}, parallel_options options = {}) {
  return processor_factory::valid_or_not([&] {
    return detail::make(detail::source_of(std::forward<Handler>(handler)), std::move(policy),
                        std::move(options), std::nullopt);
  });
}

/// As `parallel` without an executor, but the coroutines run on an executor of the program's own.
/// Thread safety: each coroutine has a strand; several of them run at the same time if the executor
/// has several threads.
/// Lifetime: keep the executor running until the session is over; each shard counts as outstanding
/// work of it.
template <class Handler>
requires(detail::handles_record<std::decay_t<Handler>> ||
         detail::makes_handler<std::decay_t<Handler>>) [[nodiscard]] processor_factory
    parallel(Handler&& handler, failure_policy policy, parallel_options options,
             boost::asio::any_io_executor executor) {
  return processor_factory::valid_or_not([&] {
    return detail::make(detail::source_of(std::forward<Handler>(handler)), std::move(policy),
                        std::move(options), std::move(executor));
  });
}

/// Processes records by a key of the values in them, with kclxx/json.hpp: see its json(function,
/// key). `executor` is at most one executor, as above.
template <class Keyed, class... Executor>
requires requires { typename Keyed::is_keyed; }
[[nodiscard]] processor_factory parallel(const Keyed& handler, failure_policy policy = {},
                                         parallel_options options = {}, Executor... executor) {
  return handler.factory(
      std::move(options), [policy = std::move(policy), executor...](auto of_shard, auto own) {
        return parallel(std::move(of_shard), policy, std::move(own), executor...);
      });
}

}  // namespace kclxx::asio
