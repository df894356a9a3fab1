// SPDX-License-Identifier: Apache-2.0
// A real child whose user code does not return, or runs in timers.
#include <fstream>
#include <string>
#include <unistd.h>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace kclxx::test;

namespace {

/// That it leaves with this status after its input has ended, within what a busy machine needs.
void must_leave(scripted_daemon& daemon, int status, const char* logged = "") {
  CHECK(daemon.end() == status);
  CHECK(contains(daemon.stderr_so_far(), logged));
}

}  // namespace

TEST_CASE("request_worker_stop sends the daemon one SIGTERM, and the dialogue continues",
          "[process][worker_stop]") {
  const termination_count counted;
  started_child shard;
  shard.records({"stop the worker"});
  shard.await_stderr("the daemon, process " + std::to_string(::getpid()) + ", is asked to stop");
  CHECK(counted.await_first() == 1);
  shard.expect_checkpoint("1");
  shard.answer();
  shard.expect_status("processRecords");
  shard.shutdown_requested();
  shard.expect_status("shutdownRequested");
  CHECK(shard.end() == 0);
  CHECK(counted.get() == 1);
}

TEST_CASE("a program whose input is a file has no daemon to stop",
          "[process][own-process][worker_stop]") {
  const termination_count counted;
  const temporary_folder folder;
  const std::string file = (folder.path() / "lines").string();
  std::ofstream(file) << R"({"action":"initialize","shardId":"s","sequenceNumber":"0"})" << '\n'
                      << records_line({"stop the worker"}) << '\n';
  scripted_daemon one({child}, {.input_file = file, .environment = {}});
  one.await_stderr("the worker is not asked to stop: no daemon runs this program");
  CHECK(counted.get() == 0);
}

TEST_CASE("whatever user code hangs, the process leaves after the grace time",
          "[process][P31][P56][P57]") {
  SECTION("a stop_callback") {
    started_child one({"short_grace"});
    one.records({"stop_callback that hangs", "wait for stop"});
    must_leave(one, 13, "batch of 2");
  }
  SECTION("a callback, while lines wait for their turn before the end of the input") {
    const unsigned waiting = GENERATE(1U, 2U, 50U);
    started_child one({"short_grace"});
    one.records({"sleep"});
    for (unsigned line = 0; line < waiting; ++line) one.records({"a"}, 2 + line);
    must_leave(one, 13, "a callback did not return within the grace time");
  }
  SECTION("a callback of a line that has waited for its turn") {
    started_child one({"short_grace"});
    one.records({"a"});
    one.records({"a"}, 2);
    one.records({"sleep"}, 3);
    one.records({"a"}, 4);
    must_leave(one, 13, "a callback did not return within the grace time");
  }
  SECTION("a stop_callback, and the callback too") {
    started_child one({"short_grace"});
    one.records({"stop_callback that hangs", "sleep"});
    must_leave(one, 13);
  }
  SECTION("a log function, for a mutex that a thread in checkpoint() holds") {
    started_child one({"short_grace", "own_log"});
    one.records({"a"});
    one.expect_checkpoint("1");
    one.expect_status("processRecords");
    one.answer();
    one.process({"checkpoint with the log's mutex"}, 2);
    one.await_stderr("thread waits");
    one.send(R"({"action":"ping"})");  // it is logged
    one.expect_status("ping");
    must_leave(one, 0, "thread: the daemon is gone");
    CHECK(contains(one.stderr_so_far(), "own log 1"));
  }
  SECTION("a log function, for good") {
    started_child one({"short_grace", "hanging_log"});
    one.send(R"({"action":"ping"})");
    one.expect_status("ping");
    must_leave(one, 13, "a log function or a checkpoint handler did not return");
  }
  SECTION("a log function, and the callback too") {
    started_child one({"short_grace", "hanging_log"});
    one.records({"sleep"});
    must_leave(one, 13);
  }
  SECTION("a checkpoint handler") {
    started_child one({"short_grace", "manual"});
    one.records({"async with a handler that hangs"});
    one.expect_checkpoint("1");
    one.expect_status("processRecords");
    one.answer();
    one.await_stderr("handler hangs");
    one.process({"a"}, 2);  // the session continues
    must_leave(one, 13);
  }
  SECTION("the destructor") {
    started_child one({"short_grace", "manual"});
    one.process({"hang in the destructor"});
    must_leave(one, 13, "the processor's destructor");
  }
  SECTION("a timer") {
    started_child one({"short_grace", "manual"});
    one.process({"timer that hangs"});
    one.await_stderr("timer hangs");
    must_leave(one, 13);
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
    started_child daemon({"no_grace", "manual"});
    daemon.process({"a"});
    daemon.close_input();
    clean += daemon.wait_exit() == 0 ? 1 : 0;
  }
  CHECK(clean == times);
}

TEST_CASE("options that cannot work end a program with one line in the log, and status 15",
          "[process]") {
  scripted_daemon one({child, "park_nowhere"},
                      {.input_file = {}, .environment = {"KCLXX_PARKING_DIR="}});
  CHECK(one.wait_exit() == 15);
  one.await_end_of_stderr();
  const std::string log = one.stderr_so_far();
  CHECK(contains(log,
                 "cannot serve the daemon: failure_policy: bad_record::park needs a place: set "
                 "KCLXX_PARKING_DIR to a directory, or failure_policy::lot"));
  CHECK_FALSE(contains(log, "terminate"));
}

TEST_CASE("a timer runs on the callbacks' thread while the shard is idle", "[process]") {
  started_child daemon({"manual"});
  daemon.process({"timer"});
  daemon.await_stderr("timer on the callbacks' thread after 1 more batches");
}

TEST_CASE("a timer that is always due leaves room for callbacks and for reading", "[process]") {
  started_child daemon({"manual"});
  daemon.process({"timer that is always due"});
  for (unsigned i = 2; i < 12; ++i) daemon.process({"a"}, i);
  CHECK(daemon.end() == 0);
}

TEST_CASE("a timer that runs at the end of the input may finish", "[process]") {
  started_child daemon({"manual"});
  daemon.process({"timer that waits for stop"});
  daemon.await_stderr("timer waits");
  CHECK(daemon.end() == 0);
  CHECK(contains(daemon.stderr_so_far(), "stopped"));
}
