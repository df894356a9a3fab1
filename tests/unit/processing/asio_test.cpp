// SPDX-License-Identifier: Apache-2.0
// kclxx/asio.hpp: coroutines as handlers, and checkpoints with completion tokens, on real threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/version.hpp>

#include <kclxx/asio.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/run_options.hpp"
#include "unit/processing/served_records.hpp"
#include "unit/runtime/served_shard.hpp"

namespace {

namespace asio = boost::asio;
using kclxx::record;
using kclxx::shard_context;
using namespace kclxx::test;
using namespace std::chrono_literals;

[[maybe_unused]] asio::awaitable<void> sleep(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

/// Lets the others of its executor run.
asio::awaitable<void> yield() { co_await asio::post(asio::use_awaitable); }

}  // namespace

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
/// Asio counts the owners of an executor with a fence, which ThreadSanitizer does not know.
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race:boost::asio::execution::detail::shared_target_executor::~shared_target_executor\n";
}
#endif
#endif

TEST_CASE("coroutines process records side by side, those of a key in order, on one thread",
          "[processing][asio]") {
  processed_records done;
  std::atomic<int> failures = 0;
  std::atomic<int> running = 0;
  std::atomic<int> most_running = 0;
  std::set<std::thread::id> threads;  // of one thread, if the test passes
  served_shard shard(
      kclxx::asio::parallel(
          [&](record event, const shard_context&) -> asio::awaitable<void> {
            threads.insert(std::this_thread::get_id());
            most_running = std::max<int>(most_running, ++running);
            co_await yield();
            --running;
            if (number_of(event) % 50 == 0 && failures++ % 2 == 0) {
              throw std::runtime_error("no");
            }
            done.add(event);
          },
          {.initial_backoff = 1ms, .max_backoff = 2ms}, {.lanes = 40, .window_records = 500}),
      prompt());
  CHECK(process_shard(shard, 3000, 200, 61));
  CHECK(done.count() == 3000);
  CHECK(done.is_in_order());
  CHECK(most_running > 10);
  CHECK(most_running <= 40);
  CHECK(threads.size() == 1);
}

namespace {
awaited_count function_calls;
asio::awaitable<void> handle(record, const shard_context&) {
  co_await yield();
  ++function_calls;
}
}  // namespace

TEST_CASE("a plain function can be the coroutine", "[processing][asio]") {
  served_shard shard(kclxx::asio::parallel(handle), prompt());
  shard.initialize("shard-1");
  process(shard, keyed_records(20, 1, 3));
  CHECK(function_calls.await(20));
  CHECK(function_calls == 20);
}

TEST_CASE("coroutines run on the program's executor", "[processing][asio]") {
  processed_records done;
  asio::thread_pool pool(4);
  {
    served_shard shard(kclxx::asio::parallel(
                           [&](const record& event) -> asio::awaitable<void> {
                             co_await yield();
                             done.add(event);
                           },
                           {}, {}, pool.get_executor()),
                       prompt());
    CHECK(process_shard(shard, 3000, 200, 61));
  }
  pool.join();
  CHECK(done.count() == 3000);
  CHECK(done.is_in_order());
}

TEST_CASE("a shard can have a handler of its own, made for its executor", "[processing][asio]") {
  std::atomic<int> sum = 0;
  std::string shard_id;
  {
    served_shard shard(kclxx::asio::parallel(
                           [&](const shard_context& context, asio::any_io_executor executor) {
                             shard_id = context.shard_id();
                             auto timer = std::make_shared<asio::steady_timer>(executor);
                             return [&sum, timer](record event) -> asio::awaitable<void> {
                               timer->expires_after(1ms);
                               co_await timer->async_wait(asio::use_awaitable);
                               sum += static_cast<int>(number_of(event));
                             };
                           },
                           {}, {.lanes = 1}),
                       prompt());
    shard.initialize("shard-1");
    process(shard, keyed_records(10, 1, 3));
    CHECK(perform(shard, "shardEnded"));
  }
  CHECK(shard_id == "shard-1");
  CHECK(sum == 55);
}

TEST_CASE("an exception that leaves a function on the shard's context ends the session",
          "[processing][asio]") {
  served_shard shard(
      kclxx::asio::parallel([](const shard_context&, asio::any_io_executor executor) {
        asio::post(executor, [] { throw std::runtime_error("no such table"); });
        return [](record) -> asio::awaitable<void> { co_return; };
      }),
      prompt());
  shard.send(R"({"action":"initialize","shardId":"shard-1"})");  // may fail before its status
  CHECK(shard.status() == kclxx::exit_status::callback_failed);
  CHECK(logged(shard, "no such table"));
}

TEST_CASE("a shard's context that is stopped ends the session", "[processing][asio]") {
  const auto handler = [](record event) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    auto& context = asio::query(executor, asio::execution::context);
    if (number_of(event) == 2) static_cast<asio::io_context&>(context).stop();
    co_await yield();
  };
  served_shard shard(kclxx::asio::parallel(handler), prompt());
  shard.initialize("shard-1");
  shard.send(keyed_records(4, 1, 4));
  CHECK(shard.status() == kclxx::exit_status::callback_failed);
  CHECK(logged(shard, "the shard's io_context was stopped by the program"));
}

TEST_CASE("a program's context that has stopped ends the session", "[processing][asio]") {
  asio::io_context context;
  context.run();  // for want of work it stops
  served_shard shard(kclxx::asio::parallel(handle, {}, {}, context.get_executor()), prompt());
  shard.send(R"({"action":"initialize","shardId":"shard-1"})");
  CHECK(shard.status() == kclxx::exit_status::callback_failed);
  CHECK(logged(shard, "the io_context of asio::parallel has stopped"));
}

TEST_CASE("a program's context that stops while a coroutine waits ends the session",
          "[processing][asio]") {
  const std::string action = GENERATE("shardEnded", "shutdownRequested", "processRecords");
  const bool stops_in_callback = GENERATE(false, true);
  CAPTURE(action, stops_in_callback);
  struct at_end {
    explicit at_end(const std::shared_ptr<int>& member) : of_handler(member) {}
    at_end(const at_end&) = delete;
    at_end& operator=(const at_end&) = delete;
    ~at_end() { ++*of_handler; }
    const std::shared_ptr<int>& of_handler;
  };
  const auto ended = std::make_shared<int>(0);
  awaited_count running;
  std::optional<asio::io_context> context(std::in_place);
  std::optional work(asio::make_work_guard(*context));
  std::thread thread([&] { context->run(); });
  {
    const auto make = [&](const shard_context&, const asio::any_io_executor&) {
      return [&running, ended](const record&) -> asio::awaitable<void> {
        const at_end destroyed(ended);
        ++running;
        co_await sleep(1h);
      };
    };
    served_shard shard(
        kclxx::asio::parallel(make, {}, {.window_records = 1}, context->get_executor()), prompt());
    shard.initialize("shard-1");
    shard.send(keyed_records(1, 1, 1));
    shard.expect_status("processRecords");
    REQUIRE(running.await(1));
    if (!stops_in_callback) context->stop();
    shard.send(action == "processRecords" ? keyed_records(4, 2, 1)
                                          : R"({"action":")" + action + "\"}");
    if (stops_in_callback) {
      shard.await_long_callback();
      context->stop();
    }
    CHECK(shard.status() == kclxx::exit_status::callback_failed);
    CHECK(logged(shard, "the io_context of asio::parallel has stopped"));
  }
  thread.join();
  CHECK(ended.use_count() == 2);  // the coroutine uses its handler
  work.reset();
  context.reset();
  CHECK(*ended == 1);
  CHECK(ended.use_count() == 1);
}

TEST_CASE("a program's context does not return for want of work while a shard uses it",
          "[processing][asio]") {
  asio::io_context context;
  std::optional work(asio::make_work_guard(context));
  std::thread thread([&] { context.run(); });
  {
    served_shard shard(kclxx::asio::parallel(handle, {}, {}, context.get_executor()), prompt());
    shard.initialize("shard-1");
    work.reset();
    process(shard, keyed_records(3, 1, 3));
    CHECK(perform(shard, "shardEnded"));
    CHECK(shard.end() == kclxx::exit_status::ok);
  }
  thread.join();
}

#if BOOST_VERSION >= 107700  // an older one cannot cancel a coroutine

TEST_CASE("the stop token cancels coroutines that wait", "[processing][asio]") {
  const bool is_own_context = GENERATE(true, false);
  awaited_count running;
  awaited_count cancelled;
  const auto handler = [&](record) -> asio::awaitable<void> {
    ++running;
    try {
      co_await sleep(1h);
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::operation_aborted) ++cancelled;
      throw;
    }
  };
  asio::thread_pool pool(2);
  {
    const kclxx::parallel_options options{.lanes = 64};
    served_shard shard(is_own_context
                           ? kclxx::asio::parallel(handler, {}, options)
                           : kclxx::asio::parallel(handler, {}, options, pool.get_executor()),
                       prompt());
    shard.initialize("shard-1");
    shard.send(keyed_records(100, 1, 100));
    shard.expect_status("processRecords");
    REQUIRE(running.await(64));
    shard.send(R"({"action":"leaseLost"})");
    shard.expect_status("leaseLost");
    CHECK(cancelled.await(64));
    CHECK(shard.end() == kclxx::exit_status::ok);
    CHECK(shard.log().entries().empty());
  }
  CHECK(running == 64);
}
#endif

namespace {

/// What a client library has: a coroutine waits for its answer.
struct client {
  asio::io_context context;
  asio::steady_timer answer{context, 1h};
};

}  // namespace

TEST_CASE("a coroutine that Asio destroys with what it waits for fails its record, and has ended",
          "[processing][asio]") {
  awaited_count calls;
  std::unique_ptr<client> connection;
  served_shard shard(kclxx::asio::parallel(
                         [&](record) -> asio::awaitable<void> {
                           if (++calls > 1) co_return;
                           connection = std::make_unique<client>();
                           asio::post(co_await asio::this_coro::executor,
                                      [&] { connection.reset(); });
                           co_await connection->answer.async_wait(asio::use_awaitable);
                         },
                         {.initial_backoff = 1ms}),
                     prompt());
  shard.initialize("shard-1");
  shard.send(keyed_records(1, 1, 1));
  shard.expect_status("processRecords");
  REQUIRE(calls.await(2));
  shard.send(R"({"action":"leaseLost"})");  // cancels what is left
  shard.expect_status("leaseLost");
  CHECK(shard.end() == kclxx::exit_status::ok);  // 13 once it has waited for the grace time
}

TEST_CASE("a coroutine that cannot begin has ended", "[asio]") {
  struct unmovable {
    explicit unmovable(int moves) : moves_left(moves) {}
    unmovable(unmovable&& source) : moves_left(source.moves_left - 1) {
      if (moves_left < 0) throw std::bad_alloc();
    }
    void operator()(const std::exception_ptr&) const {}
    int moves_left;
  };
  for (int moves = 1;; ++moves) {  // at each step of start() and of what it has posted
    INFO(moves);
    REQUIRE(moves < 100);
    asio::io_context context;
    const auto running = std::make_shared<kclxx::asio::detail::coroutines>();
    bool has_failed = false;
    try {
      running->start(
          context.get_executor(), [] { return yield(); }, unmovable(moves));
      context.run();
    } catch (const std::bad_alloc&) {
      has_failed = true;
    }
    CHECK(running->is_empty());
    running->cancel();
    context.restart();
    context.run();
    if (!has_failed) break;
  }
}

TEST_CASE(
    "with an empty function, policy or options that cannot work, asio::parallel makes no valid "
    "factory",
    "[processing][asio]") {
  using handler = std::function<asio::awaitable<void>(const record&)>;
  CHECK_THROWS_WITH(kclxx::asio::parallel(handler()).require_valid(),
                    "a handler is an empty function");
  kclxx::testing::worker daemon(kclxx::asio::parallel(
      [](const shard_context&, const asio::any_io_executor&) { return handler(); }));
  daemon.initialize();
  REQUIRE(daemon.thrown());
  CHECK_THROWS_WITH(std::rethrow_exception(daemon.thrown()), "a handler is an empty function");
  CHECK_THROWS_AS(kclxx::asio::parallel(handle, {.max_attempts = 0}).require_valid(),
                  std::invalid_argument);
  CHECK_THROWS_AS(kclxx::asio::parallel(handle, {}, {.lanes = 0}).require_valid(),
                  std::invalid_argument);
}
