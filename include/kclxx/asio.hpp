// SPDX-License-Identifier: Apache-2.0
// Coroutines and completion tokens of the program's own Boost.Asio (1.74 or newer). Header-only.
// kclxx.hpp does not include it, since this header needs Boost's headers.
// See kclxx/kclxx.hpp for the default contract, and for when an action of the daemon is open.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/system/error_code.hpp>

#include <kclxx/asio_timer.hpp>  // IWYU pragma: export
#include <kclxx/checkpointer.hpp>
#include <kclxx/detail/asio_handler.hpp>
#include <kclxx/detail/asio_pending_checkpoints.hpp>
#include <kclxx/detail/asio_processor.hpp>
#include <kclxx/detail/asio_running_records.hpp>
#include <kclxx/error.hpp>

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
/// complete when the coroutine returns. An exception from the coroutine is a failure of the record.
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
/// Errors: as kclxx::parallel, and std::invalid_argument for an empty function.
/// Thread safety: the coroutines of one shard need no lock among themselves. If a process serves
/// several shards (see `serve`), they call the same handler at the same time, unless a function
/// makes a handler for each shard.
template <class Handler>
requires(detail::handles_record<std::decay_t<Handler>> ||
         detail::makes_handler<std::decay_t<Handler>>) [[nodiscard]] processor_factory
    parallel(Handler&& handler, failure_policy policy = {}, parallel_options options = {}) {
  return detail::make(detail::source_of(std::forward<Handler>(handler)), std::move(policy),
                      std::move(options), std::nullopt);
}

/// The same on an executor of the program's own.
/// Thread safety: each coroutine has a strand; several of them run at the same time if the executor
/// has several threads.
/// Lifetime: keep the executor running until the session is over; each shard counts as outstanding
/// work of it.
template <class Handler>
requires(detail::handles_record<std::decay_t<Handler>> ||
         detail::makes_handler<std::decay_t<Handler>>) [[nodiscard]] processor_factory
    parallel(Handler&& handler, failure_policy policy, parallel_options options,
             boost::asio::any_io_executor executor) {
  return detail::make(detail::source_of(std::forward<Handler>(handler)), std::move(policy),
                      std::move(options), std::move(executor));
}

/// checkpointer::async_checkpoint with a completion token: use_awaitable, use_future, a callback.
/// The signature is `void(boost::system::error_code)`; the code is empty when the target or a later
/// position is persisted. With Boost 1.81 or newer it converts back to the original
/// std::error_code: `std::error_code(ec) == kclxx::checkpoint_condition::lease_gone`.
///
/// The handler is posted to its associated executor. Until then the operation counts as outstanding
/// work of that executor. On an idle shard the checkpoint can take hours, until an action is open.
/// If the execution context is destroyed before that, the handler is destroyed and never called.
///
/// A coroutine of `parallel` must not wait for the checkpoint of its own or a later record, which
/// is sent after the coroutine has returned: pass a callback. The wait fails with
/// errc::not_allowed_here, or never ends (docs/processing.md).
/// Errors: the error code is passed to the handler; use_awaitable and use_future throw it.
/// Thread safety: as checkpointer.
template <class CompletionToken>
auto async_checkpoint(const checkpointer& checkpointer, const checkpoint_target& target,
                      CompletionToken&& token) {
  return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
      [](auto handler, const kclxx::checkpointer& session, const checkpoint_target& position) {
        const auto executor = boost::asio::get_associated_executor(handler);
        const bool is_endless =
            detail::running_records::waits_for_itself(handler, executor, position);
        auto post = detail::pending_checkpoints_of(executor).add(std::move(handler), executor);
        if (is_endless) return post(errc::not_allowed_here);
        session.async_checkpoint(position, std::move(post));
      },
      token, checkpointer, target);
}

}  // namespace kclxx::asio
