// SPDX-License-Identifier: Apache-2.0
// asio::parallel in the test kit: coroutines and their timers in virtual time.
#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <boost/version.hpp>

#include <kclxx/asio.hpp>
#include <kclxx/json.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"

namespace {

namespace asio = boost::asio;
using kclxx::record;
using kclxx::sequence_position;
using kclxx::shard_context;
using kclxx::testing::worker;
using namespace std::chrono_literals;

asio::awaitable<void> sleep_for(std::chrono::steady_clock::duration time) {
  kclxx::asio::timer pause(co_await asio::this_coro::executor, time);
  co_await pause.async_wait(asio::use_awaitable);
}

TEST_CASE("a coroutine that waits and fails is tried again in virtual time", "[testing][asio]") {
  std::vector<std::string> posted;
  worker played(kclxx::asio::parallel([&](const record& event) -> asio::awaitable<void> {
    kclxx::asio::timer pause(co_await asio::this_coro::executor, 1h);
    co_await pause.async_wait(asio::use_awaitable);
    posted.emplace_back(event.data());
    if (posted.size() == 1) throw std::runtime_error("503");
  }));
  const auto begin = played.initialize().now();
  played.deliver({"a"}).end_shard();
  INFO(played);
  CHECK(posted == std::vector<std::string>{"a", "a"});
  CHECK(played.now() - begin >= 2h);
  CHECK(played.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("a coroutine of a value in JSON may refer to it, and its key is the value's",
          "[testing][asio][json]") {
  using kclxx::json;
  std::vector<std::string> ended;
  const auto handle = [&](const std::string& name, const record& event) -> asio::awaitable<void> {
    const auto time = std::chrono::seconds(event.partition_key() == "slow" ? 3 : 1);
    co_await sleep_for(time);
    ended.push_back(name);
  };
  const auto deliver = [&](const kclxx::processor_factory& factory) {
    ended.clear();
    worker played(factory);
    played.initialize().deliver_records(std::vector<record::fields>{
        {.data = R"("a name that is not short")", .partition_key = "slow"},
        {.data = R"("a name that is not short")", .partition_key = "quick"},
        {.data = R"("another one")", .partition_key = "quick"}});
    played.end_shard();
    CHECK(played.persisted() == sequence_position("SHARD_END"));
  };
  deliver(kclxx::asio::parallel(json<std::string>(handle)));
  CHECK(ended == std::vector<std::string>{"a name that is not short", "another one",
                                          "a name that is not short"});
  deliver(kclxx::asio::parallel(
      json<std::string>(handle, [](const std::string& name) { return name; })));
  CHECK(ended == std::vector<std::string>{"another one", "a name that is not short",
                                          "a name that is not short"});
}

TEST_CASE("what is no value is a coroutine's failure", "[testing][asio][json]") {
  worker played(
      kclxx::asio::parallel(kclxx::json<int>([](int) -> asio::awaitable<void> { co_return; }),
                            {.bad_record = kclxx::bad_record::skip}));
  played.initialize().deliver({"1", "x", "2"}).end_shard();
  CHECK(std::count_if(played.log().begin(), played.log().end(), [](const auto& line) {
          return line.text.find("skipped") != std::string::npos;
        }) == 1);
  CHECK(played.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("a coroutine that posts to itself without end ends the action", "[testing][asio]") {
  int resumptions = 0;
  worker played(kclxx::asio::parallel([&](const record&) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    for (;; ++resumptions) {
      for (int others = 1; others < 20; ++others) asio::post(executor, [] {});  // quick ones
      co_await asio::post(executor, asio::use_awaitable);
    }
  }));
  played.initialize();
  CHECK_THROWS_AS(played.deliver({"a"}), std::logic_error);
  CHECK(resumptions <= 1'000'000 / 20 + 1);
  CHECK_THROWS_AS(played.deliver({}), std::logic_error);
}

TEST_CASE("a timer starts anew, and is cancelled, as Asio's", "[testing][asio]") {
  std::vector<std::string> outcomes;
  const shard_context* shard = nullptr;
  std::shared_ptr<kclxx::asio::timer> timer;
  const auto wait = [&] {
    timer->async_wait([&](boost::system::error_code ec) { outcomes.push_back(ec.message()); });
  };
  const std::string aborted = boost::system::error_code(asio::error::operation_aborted).message();
  const std::string success = boost::system::error_code().message();
  worker played(
      kclxx::asio::parallel([&](const shard_context& of, const asio::any_io_executor& executor) {
        shard = &of;
        timer = std::make_shared<kclxx::asio::timer>(executor, 1s);
        wait();
        return [](const record&) -> asio::awaitable<void> { co_return; };
      }));
  played.initialize().advance(500ms);
  timer->expires_after(1s);
  wait();
  played.advance(999ms);
  CHECK(outcomes == std::vector<std::string>{aborted});
  played.advance(1ms);
  CHECK(outcomes == std::vector<std::string>{aborted, success});
  wait();  // it has expired
  played.advance(0ms);
  CHECK(outcomes.size() == 3);
  CHECK(outcomes.back() == success);
  timer->expires_after(1s);
  wait();
  timer->cancel();
  played.advance(0ms);
  CHECK(outcomes.back() == aborted);
  timer->expires_after(1s);
  wait();
  timer.reset();
  played.advance(0ms);
  CHECK(outcomes.size() == 5);
  CHECK(outcomes.back() == aborted);
}

TEST_CASE("after a crash no coroutine continues, and a successor processes the records",
          "[testing][asio]") {
  std::vector<std::string> ended;
  worker* self = nullptr;
  bool crashes = true;
  worker played(kclxx::asio::parallel(
      [&](const record& event) -> asio::awaitable<void> {
        co_await sleep_for(1s);
        if (crashes) self->crash();
        ended.emplace_back(event.data());
      },
      {}, {.order = kclxx::order::none}));
  self = &played;
  played.initialize().deliver({"a", "b", "c"}).advance(5s);
  CHECK(ended.empty());
  crashes = false;
  played.resume().end_shard();
  CHECK(ended == std::vector<std::string>{"a", "b", "c"});
}

#if BOOST_VERSION >= 107700
/// A coroutine that cannot be cancelled any more after the first time, and then says goodbye.
auto saying_goodbye(int& steps, std::chrono::steady_clock::duration time) {
  return [&steps, time](const record&, const shard_context& shard) -> asio::awaitable<void> {
    try {
      co_await sleep_for(1h);
    } catch (const boost::system::system_error&) {
    }
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    for (const auto begin = shard.now(); shard.now() - begin < time; ++steps) {
      co_await sleep_for(100ms);
    }
  };
}

TEST_CASE("a cancelled coroutine has time until the grace time is over", "[testing][asio]") {
  const auto [time, steps_expected, status] =
      GENERATE(table<std::chrono::milliseconds, int, std::string>(
          {{2s, 20, "left with exit status 0\n"}, {100h, 49, "left with exit status 13\n"}}));
  int steps = 0;
  kclxx::run_options options;
  options.grace_time = 5s;
  worker played(kclxx::asio::parallel(saying_goodbye(steps, time)), options);
  played.initialize().deliver({"a"}).lose_lease();
  const auto begin = played.now();
  played.resume();
  INFO(played);
  CHECK(steps == steps_expected);
  CHECK(played.now() - begin == std::min<std::chrono::steady_clock::duration>(time, 5s));
  CHECK_THAT(played.dialogue(), kclxx::test::Contains(status));
}

#endif

TEST_CASE("what waits for real time is refused, when an action waits for it", "[testing][asio]") {
  worker played(kclxx::asio::parallel([](const record&) -> asio::awaitable<void> {
    asio::steady_timer real(co_await asio::this_coro::executor, 100h);
    co_await real.async_wait(asio::use_awaitable);
  }));
  played.initialize().deliver({"a"});
  CHECK_THROWS_WITH(played.end_shard(), kclxx::test::Contains("kclxx::asio::timer"));
}

TEST_CASE("an executor of the program's own is refused", "[testing][asio]") {
  asio::io_context context;
  worker played(kclxx::asio::parallel([](const record&) -> asio::awaitable<void> { co_return; }, {},
                                      {}, context.get_executor()));
  played.initialize();
  CHECK_THROWS_WITH(std::rethrow_exception(played.thrown()),
                    kclxx::test::Contains("leave the executor out"));
}

}  // namespace
