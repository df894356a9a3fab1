// SPDX-License-Identifier: Apache-2.0
// How soon a shard has left after the end of its input, while 64 of its handlers wait for nothing
// but the stop token. The floor are as many threads that wait for a stop token, and are joined.
#include <array>
#include <atomic>
#include <benchmark/benchmark.h>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <kclxx/asio.hpp>
#include <kclxx/serve.hpp>

namespace kclxx::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr int handlers = 64;

void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
}

void count_time(benchmark::State& state, clock::time_point since) {
  state.SetIterationTime(std::chrono::duration<double>(clock::now() - since).count());
}

void await(const std::atomic<int>& running) {
  while (running < handlers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void send(int to, std::string_view line) {
  if (::send(to, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error("the child does not read");
  }
}

std::string records() {
  std::string line = R"({"action":"processRecords","records":[)";
  for (int i = 1; i <= 2 * handlers; ++i) {
    const std::string number = std::to_string(i);
    if (i > 1) line += ",";
    line.append(R"({"action":"record","data":"eA==","partitionKey":")").append(number);
    line.append(R"(","sequenceNumber":")").append(number);
    line += R"(","approximateArrivalTimestamp":1600000000000,"subSequenceNumber":0})";
  }
  return line + "],\"millisBehindLatest\":0}\n";
}

/// One iteration is one life of a shard. `running` counts its handlers.
void measure_stop(benchmark::State& state, const processor_factory& factory,
                  std::atomic<int>& running) {
  run_options options;
  options.log = [](const log_entry&) {};
  for (auto _ : state) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == -1) {
      throw std::runtime_error("socketpair");
    }
    running = 0;
    auto status = exit_status::start_failed;
    std::jthread shard([&] { status = serve({ends[1], ends[1]}, factory, options); });
    send(ends[0], "{\"action\":\"initialize\",\"shardId\":\"shardId-000000000000\"}\n");
    send(ends[0], records());
    await(running);
    const auto stopped = clock::now();
    ::shutdown(ends[0], SHUT_WR);
    shard.join();
    count_time(state, stopped);
    ::close(ends[0]);
    ::close(ends[1]);
    // The callback may not have returned yet.
    if (status != exit_status::ok && status != exit_status::daemon_gone) {
      state.SkipWithError("the session did not end as it should");
    }
  }
}

void stop_of_64_lanes(benchmark::State& state) {
  std::atomic<int> running = 0;
  measure_stop(state,
               parallel(
                   [&](const record&, const shard_context& shard) {
                     ++running;
                     wait_for(shard.stop_token());
                   },
                   {}, {.lanes = handlers}),
               running);
}

void stop_of_64_coroutines(benchmark::State& state) {
  std::atomic<int> running = 0;
  const auto handler = [&](record) -> boost::asio::awaitable<void> {
    ++running;
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                    std::chrono::hours(1));
    co_await timer.async_wait(boost::asio::use_awaitable);
  };
  measure_stop(state, kclxx::asio::parallel(handler, {}, {.lanes = handlers}), running);
}

void floor_of_stop(benchmark::State& state) {
  std::atomic<int> running = 0;
  for (auto _ : state) {
    running = 0;
    std::stop_source source;
    std::vector<std::jthread> threads;
    for (int i = 0; i < handlers; ++i) {
      threads.emplace_back([&] {
        ++running;
        wait_for(source.get_token());
      });
    }
    await(running);
    const auto stopped = clock::now();
    source.request_stop();
    threads.clear();
    count_time(state, stopped);
  }
}

BENCHMARK(stop_of_64_lanes)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(20);
BENCHMARK(stop_of_64_coroutines)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(20);
BENCHMARK(floor_of_stop)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(20);

}  // namespace

}  // namespace kclxx::bench
