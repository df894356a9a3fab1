// SPDX-License-Identifier: Apache-2.0
// A real child whose user code does not return, forks, or runs in timers.
#include <chrono>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;

namespace {

/// What the child of "short_grace" has: 300 ms, and the second that run promises.
#ifdef KCLXX_IS_SANITIZED  // ThreadSanitizer alone sleeps for a second at exit
constexpr auto longest_leave = 10s;
#else
constexpr auto longest_leave = 1300ms;
#endif

struct leaving {
  int status;
  std::chrono::steady_clock::duration time;
};

leaving end_input(scripted_daemon& daemon) {
  const auto begin = std::chrono::steady_clock::now();
  daemon.close_input();
  const int status = daemon.wait_exit();
  return {status, std::chrono::steady_clock::now() - begin};
}

}  // namespace

TEST_CASE("whatever user code hangs, the process leaves within the grace time and a second",
          "[process][P31][P56]") {
  SECTION("a stop_callback") {
    scripted_daemon daemon({child, "short_grace"});
    start(daemon);
    daemon.records({"stop_callback that hangs", "wait for stop"});
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
    CHECK(contains(daemon.stderr_so_far(), "batch of 2"));
  }
  SECTION("a stop_callback, and the callback too") {
    scripted_daemon daemon({child, "short_grace"});
    start(daemon);
    daemon.records({"stop_callback that hangs", "sleep"});
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
  }
  SECTION("a log function, for a mutex that a thread in checkpoint() holds") {
    scripted_daemon daemon({child, "short_grace", "own_log"});
    start(daemon);
    daemon.records({"checkpoint with the log's mutex"});
    daemon.expect_checkpoint("1");
    daemon.expect_status("processRecords");
    daemon.answer();
    daemon.records({});
    daemon.expect_status("processRecords");
    daemon.await_stderr("thread waits");
    daemon.send(R"({"action":"ping"})");
    daemon.expect_status("ping");
    const auto [status, time] = end_input(daemon);
    CHECK(status == 0);
    CHECK(time < longest_leave);
    CHECK(contains(daemon.stderr_so_far(), "own log 1"));
  }
  SECTION("a log function, for good") {
    scripted_daemon daemon({child, "short_grace", "hanging_log"});
    start(daemon);
    daemon.send(R"({"action":"ping"})");
    daemon.expect_status("ping");
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
    CHECK(
        contains(daemon.stderr_so_far(), "a log function or a checkpoint handler did not return"));
  }
  SECTION("a log function, and the callback too") {
    scripted_daemon daemon({child, "short_grace", "hanging_log"});
    start(daemon);
    daemon.records({"sleep"});
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
  }
  SECTION("a checkpoint handler") {
    scripted_daemon daemon({child, "short_grace", "manual"});
    start(daemon);
    daemon.records({"async with a handler that hangs"});
    daemon.expect_checkpoint("1");
    daemon.expect_status("processRecords");
    daemon.answer();
    daemon.await_stderr("handler hangs");
    daemon.records({"a"}, 2);  // the session continues
    daemon.expect_status("processRecords");
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
  }
  SECTION("the destructor") {
    scripted_daemon daemon({child, "short_grace", "manual"});
    start(daemon);
    daemon.records({"hang in the destructor"});
    daemon.expect_status("processRecords");
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
    CHECK(contains(daemon.stderr_so_far(), "the processor's destructor"));
  }
  SECTION("a timer") {
    scripted_daemon daemon({child, "short_grace", "manual"});
    start(daemon);
    daemon.records({"timer that hangs"});
    daemon.expect_status("processRecords");
    daemon.await_stderr("timer hangs");
    const auto [status, time] = end_input(daemon);
    CHECK(status == 13);
    CHECK(time < longest_leave);
  }
}

TEST_CASE("a grace time of zero does not make a clean end a stuck callback", "[process]") {
#ifdef KCLXX_IS_SANITIZED
  constexpr int times = 20;
#else
  constexpr int times = 200;
#endif
  int clean = 0;
  for (int i = 0; i < times; ++i) {
    scripted_daemon daemon({child, "no_grace", "manual"});
    start(daemon);
    daemon.records({"a"});
    daemon.expect_status("processRecords");
    daemon.close_input();
    clean += daemon.wait_exit() == 0 ? 1 : 0;
  }
  CHECK(clean == times);
}

TEST_CASE("sleep_for ends when the stop token stops", "[process]") {
  scripted_daemon daemon({child});
  start(daemon);
  daemon.records({"sleep until stopped"});
  CHECK(daemon.is_silent_for(20ms));
  const auto [status, time] = end_input(daemon);
  CHECK(status == 12);
  CHECK(contains(daemon.stderr_so_far(), "woken by the stop token"));
  CHECK(time < longest_leave);
}

TEST_CASE("a fork in a callback writes no second status, and the copy leaves", "[process][P5]") {
  scripted_daemon daemon({child, "manual"});
  start(daemon);
  daemon.records({"fork"});
  daemon.expect_status("processRecords");
  daemon.await_stderr("in the copy");
  daemon.await_stderr("a forked copy of the process returned from user code and leaves");
  CHECK(daemon.is_silent_for(50ms));
  daemon.records({"a"}, 2);
  daemon.expect_status("processRecords");
  daemon.close_input();
  CHECK(daemon.wait_exit() == 0);
  CHECK(daemon.rest().find_first_not_of('\n') == std::string::npos);
}

TEST_CASE("a timer runs on the callbacks' thread while the shard is idle", "[process]") {
  scripted_daemon daemon({child, "manual"});
  start(daemon);
  daemon.records({"timer"});
  daemon.expect_status("processRecords");
  daemon.await_stderr("timer on the callbacks' thread after 1 more batches");
}

TEST_CASE("a timer does not run during a callback, but after it", "[process]") {
  scripted_daemon daemon({child, "manual"});
  start(daemon);
  daemon.records({"timer that is due during its callback"});
  daemon.expect_status("processRecords");
  daemon.await_stderr("the callback ends");
  daemon.await_stderr("timer after 1 batches");
}

TEST_CASE("a timer that throws ends the session as a callback does", "[process]") {
  scripted_daemon daemon({child, "manual"});
  start(daemon);
  daemon.records({"timer that throws"});
  daemon.expect_status("processRecords");
  CHECK(daemon.wait_exit() == 10);
  CHECK(contains(daemon.stderr_so_far(), "a timer failed: as told"));
}

TEST_CASE("a timer's checkpoint leaves out the batch that is delivered but not yet processed",
          "[process][P63]") {
  scripted_daemon daemon({child, "manual", "at_once"});
  start(daemon);
  daemon.records({"timer that checkpoints", "pause"}, 1);
  daemon.records({"throw"}, 10);  // there before the timer runs
  daemon.expect_status("processRecords");
  daemon.expect_checkpoint("2");
  daemon.answer();
  CHECK(daemon.wait_exit() == 10);
  CHECK(daemon.rest().find_first_not_of('\n') == std::string::npos);
  CHECK(contains(daemon.stderr_so_far(), "timer waits: nothing can be checkpointed"));
}

TEST_CASE("a timer that is always due leaves room for callbacks and for reading", "[process]") {
  scripted_daemon daemon({child, "manual"});
  start(daemon);
  daemon.records({"timer that is always due"});
  daemon.expect_status("processRecords");
  for (unsigned i = 2; i < 12; ++i) {
    daemon.records({"a"}, i);
    daemon.expect_status("processRecords");
  }
  daemon.close_input();
  CHECK(daemon.wait_exit() == 0);
}

TEST_CASE("a timer that runs at the end of the input may finish", "[process]") {
  scripted_daemon daemon({child, "manual"});
  start(daemon);
  daemon.records({"timer that waits for stop"});
  daemon.expect_status("processRecords");
  daemon.await_stderr("timer waits");
  daemon.close_input();
  CHECK(daemon.wait_exit() == 0);
  CHECK(contains(daemon.stderr_so_far(), "stopped"));
}
