// SPDX-License-Identifier: Apache-2.0
// The coroutine of docs/processing.md.
#include <boost/asio/awaitable.hpp>

#include <kclxx/asio.hpp>
#include <kclxx/kclxx.hpp>

boost::asio::awaitable<void> handle(kclxx::record event, const kclxx::shard_context& shard);

int main() { return kclxx::run(kclxx::asio::parallel(handle, {}, {.lanes = 64})); }
