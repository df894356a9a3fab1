// SPDX-License-Identifier: Apache-2.0
// parallel() on real threads, under serve(): what ThreadSanitizer and AddressSanitizer watch.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/eventually.hpp"
#include "unit/processing/processing_support.hpp"
#include "unit/processing/served_records.hpp"
#include "unit/runtime/served_shard.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

}  // namespace

TEST_CASE("64 lanes process all records, those of a key in order, with failures between",
          "[processing][lanes]") {
  processed_records done;
  std::atomic<int> failures = 0;
  served_shard shard(
      parallel(
          [&](const record& event) {
            if (number_of(event) % 16 == 0 && failures.fetch_add(1) % 2 == 0) {
              throw std::runtime_error("no");
            }
            done.add(event);
          },
          {.initial_backoff = 1ms, .max_backoff = 2ms}, {.lanes = 64, .window_records = 500}),
      prompt());
  CHECK(process_shard(shard, 6000, 300, 97));
  CHECK(done.count() == 6000);
  CHECK(done.is_in_order());
  CHECK(shard.end() == exit_status::ok);
}

TEST_CASE("completions are reported from several threads, in any order", "[processing][lanes]") {
  processed_records done;
  std::mutex mutex;
  std::condition_variable has_work;
  std::deque<completion> held;
  bool is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        std::unique_lock lock(mutex);
        has_work.wait(lock, [&] { return !held.empty() || is_over; });
        if (held.empty()) return;
        completion taken = std::move(held.back());
        held.pop_back();
        lock.unlock();
        taken.touch();
        if (number_of(taken.record()) % 10 == 0 && taken.attempt() == 1) continue;  // dropped
        done.add(taken.record());
        taken.complete();
      }
    });
  }
  {
    served_shard shard(parallel(
                           [&](completion done) {
                             const std::lock_guard lock(mutex);
                             held.push_back(std::move(done));
                             has_work.notify_one();
                           },
                           // The keys may get into step: then 20 records are dropped in a row.
                           {.initial_backoff = 1ms, .breaker = std::nullopt},
                           {.lanes = 64, .window_records = 300}),
                       prompt());
    CHECK(process_shard(shard, 3000, 100, 31));
  }
  {
    const std::lock_guard lock(mutex);
    is_over = true;
    has_work.notify_all();
  }
  for (auto& thread : threads) thread.join();
  CHECK(done.count() == 3000);
  CHECK(done.is_in_order());
}

TEST_CASE("completions are reported and destroyed while the session ends", "[processing][lanes]") {
  std::mutex mutex;
  std::vector<completion> held;
  std::atomic<bool> is_over = false;
  std::thread reporter([&] {
    while (!is_over) {
      std::vector<completion> some;
      {
        const std::lock_guard lock(mutex);
        some.swap(held);
      }
      for (std::size_t i = 0; i < some.size(); i += 2) some[i].complete();
    }
  });
  for (int round = 0; round < 20; ++round) {
    served_shard shard(parallel(
                           [&](completion done) {
                             const std::lock_guard lock(mutex);
                             held.push_back(std::move(done));
                           },
                           {.initial_backoff = 1ms, .max_backoff = 1ms}),
                       prompt());
    shard.initialize("shard-1");
    process(shard, keyed_records(100, 1, 13));
    if (round % 2 == 0) {
      perform(shard, "leaseLost");
    }
    CHECK(shard.end() == exit_status::ok);
  }
  is_over = true;
  reporter.join();
}

TEST_CASE("a stop ends retries that wait, handlers that sleep, and a callback that waits for room",
          "[processing][lanes]") {
  awaited_count running;
  awaited_count woken;
  served_shard shard(parallel(
                         [&](const record& event, const shard_context& context) {
                           if (number_of(event) % 2 == 0) throw std::runtime_error("no");
                           ++running;
                           context.sleep_for(1h);
                           ++woken;
                         },
                         {.initial_backoff = 10min, .max_backoff = 10min, .breaker = {}},
                         {.lanes = 64, .order = order::none, .window_records = 100}),
                     prompt());
  shard.initialize("shard-1");
  shard.send(keyed_records(200, 1, 200));
  REQUIRE(running.await(50));  // the others have failed
  CHECK(shard.end() == exit_status::daemon_gone);
  CHECK(woken == 50);
}

TEST_CASE("a failure that stops lets the handlers that run end, and checkpoints what is complete",
          "[processing][lanes]") {
  std::atomic<int> ended = 0;
  std::optional<served_shard> session;
  session.emplace(parallel(
                      [&](const record& event) {
                        if (number_of(event) == 4) throw std::runtime_error("the table is gone");
                        // One of the next may be taken after the log, before the failure stops it.
                        if (number_of(event) > 4) return;
                        if (session->log().await("failed after 1 attempt")) ++ended;
                      },
                      {.max_attempts = 1}, {.lanes = 4, .window_records = 4}),
                  prompt());
  served_shard& shard = *session;
  shard.initialize("shard-1");
  shard.send(keyed_records(10, 1, 10));
  // The watermark is checkpointed while the handlers end, and last when all have.
  std::string line;
  do {
    line = shard.next_line();
    shard.send(line);
  } while (line.find(R"("sequenceNumber":"3")") == std::string::npos);
  CHECK(shard.status() == exit_status::callback_failed);
  CHECK(ended == 3);
  CHECK(logged(shard, "failed: the table is gone"));
}

TEST_CASE("while a callback waits, what is complete is checkpointed within a second",
          "[processing][lanes]") {
  awaited_count may_end;  // the records up to this one
  std::atomic<bool> has_waited_in_vain = false;
  served_shard shard(parallel(
                         [&](const record& event) {
                           if (!may_end.await(number_of(event))) has_waited_in_vain = true;
                         },
                         {}, {.lanes = 3, .order = order::none, .drain_timeout = 2min}),
                     prompt());
  shard.initialize("shard-1");
  shard.send(keyed_records(3, 1, 3));
  shard.expect_status("processRecords");
  shard.send(R"({"action":"shutdownRequested"})");
  for (const int number : {1, 2}) {  // of the second none but this checkpoint tells
    ++may_end;
    const std::string line = shard.next_line();
    CHECK(line.find(R"("sequenceNumber":")" + std::to_string(number) + '"') != std::string::npos);
    shard.send(line);
  }
  ++may_end;
  shard.answer_until_status("shutdownRequested");
  CHECK_FALSE(has_waited_in_vain);
  CHECK(shard.end() == exit_status::ok);
}

TEST_CASE("leave_when_stuck ends a session whose handler does not return, as stuck",
          "[processing][lanes]") {
  static moment release;  // outlives the thread that serve() abandons
  static std::atomic<int> running = 0;
  static awaited_count destroyed;
  auto options = prompt();
  options.grace_time = 100ms;
  std::shared_ptr<void> kept(nullptr, [](void*) { ++destroyed; });  // with the session
  std::optional<served_shard> shard;
  shard.emplace(parallel(
                    [kept = std::move(kept)](const record&) {
                      ++running;
                      release.wait();
                      --running;
                    },
                    {}, {.stuck_after = 30ms, .leave_when_stuck = true}),
                options);
  shard->initialize("shard-1");
  shard->send(keyed_records(1, 1, 1));
  shard->expect_status("processRecords");
  CHECK(shard->status() == exit_status::callback_stuck);
  CHECK(logged(*shard, "is stuck (leave_when_stuck)"));
  shard.reset();
  // The numbers of the descriptors are another's now, when the thread destroys the session.
  const open_pipe others;
  release.come();
  CHECK(destroyed.await(1));
  CHECK(running == 0);
}
