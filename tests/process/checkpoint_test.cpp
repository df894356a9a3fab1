// SPDX-License-Identifier: Apache-2.0
// Checkpoints from real threads, and memory.
#include <random>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;

namespace {

unsigned long position_in(const std::string& line) {
  const std::string key = R"("sequenceNumber":")";
  const auto at = line.find(key);
  return at == std::string::npos ? 0 : std::stoul(line.substr(at + key.size()));
}

}  // namespace

TEST_CASE("async_checkpoint is sent, and its answer taken, while its callback lasts", "[process]") {
  started_child daemon({"manual", "at_once"});
  daemon.records({"async", "wait for stop"}, 5);
  daemon.expect_checkpoint("6");
  SECTION("with its answer") { daemon.answer(); }
  SECTION("without") {}
  daemon.close_input();
  daemon.await_stderr("stopped");
  CHECK(daemon.wait_exit() == 12);
}

TEST_CASE("the stop token does not fire inside a checkpoint that holds what a stop_callback wants",
          "[process]") {
  started_child daemon({"manual", "at_once"});
  daemon.records({"lock and checkpoint; a stop_callback wants the lock"});
  daemon.expect_checkpoint("1");
  SECTION("when the lease is gone") {
    daemon.answer("ShutdownException");
    daemon.await_stderr("name=ShutdownException");
    daemon.expect_status("processRecords");
    daemon.await_stderr("stop heard");
    CHECK(daemon.end() == 0);
  }
  SECTION("when the daemon dies") {
    daemon.close_input();
    daemon.await_stderr("stop heard");
    CHECK(daemon.wait_exit() == 12);
  }
}

TEST_CASE(
    "a checkpoint in a stop_callback fails at once, while the failed callback's answer is awaited",
    "[process]") {
  started_child daemon({"manual", "at_once"});
  daemon.records({"async", "stop_callback that checkpoints", "throw"}, 7);
  daemon.expect_checkpoint("9");
  daemon.await_stderr("at stop: the daemon is gone");  // nothing is persisted after a stop
  daemon.answer();
  CHECK(daemon.wait_exit() == 10);
}

TEST_CASE("each batch gets its answers and its status, whichever thread reads", "[process]") {
  started_child daemon({"manual", "at_once"});
  const std::vector<std::string> words{"async", "checkpoint", "last", "checkpoint from a thread",
                                       "quick"};
  std::mt19937 random(3);
  unsigned long highest = 0;
  for (unsigned long batch = 1; batch <= 200; ++batch) {
    std::vector<std::string> texts;
    for (std::size_t count = 1 + random() % 3; count > 0; --count) {
      texts.push_back(words[random() % words.size()]);
    }
    CAPTURE(batch, texts);
    daemon.records(texts, 10 * batch);
    std::string line;
    while ((line = daemon.next_line()).find("checkpoint") != std::string::npos) {
      CHECK(position_in(line) > highest);
      highest = position_in(line);
      daemon.answer();
    }
    REQUIRE(line == R"({"action":"status","responseFor":"processRecords"})");
  }
  CHECK(daemon.end() == 0);
}

TEST_CASE("a callback that waits in checkpoint() costs no wake-ups", "[process][own-process]") {
  started_child daemon({"manual"});
  SECTION("on the callbacks' thread") {
    daemon.records({"checkpoint"}, 5);
    daemon.expect_checkpoint("5");
  }
  SECTION("on another thread") {
    daemon.process({"checkpoint between callbacks"}, 5);
    daemon.await_stderr("thread waits");
  }
  const std::size_t before = daemon.wake_ups();
  // Time has to pass: a thread that keeps waiting causes no event.
  CHECK(daemon.is_silent_for(250ms));
  CHECK(daemon.wake_ups() - before <= 20);
}

TEST_CASE("a checkpointer in a static object can be used while the process exits",
          "[process][own-process]") {
  started_child daemon({"manual"});
  daemon.process({"checkpoint in a static object"}, 5);
  CHECK(daemon.end() == 0);
  CHECK(contains(daemon.stderr_so_far(), "at exit: the daemon is gone"));
}

TEST_CASE("a waiting checkpoint without an open action ends by its deadline and stays pending",
          "[process][P25]") {
  started_child daemon({"manual", "at_once"});
  daemon.process({"checkpoint with a deadline"}, 5);
  daemon.await_stderr("thread: no answer before the deadline");
  daemon.records({}, 6);
  daemon.expect_checkpoint("5");
  daemon.answer();
  daemon.expect_status("processRecords");
}

TEST_CASE("10,000 records in a line of 14 MB work, and the memory is given back",
          "[process][own-process][P6]") {
  started_child daemon({"at_once"});
  daemon.records({"small"});
  daemon.expect_checkpoint("1");
  daemon.expect_status("processRecords");
  daemon.answer();
  const std::size_t before = daemon.resident_kib();
  const std::vector<std::string> texts(10000, std::string(1024, 'x'));
  daemon.records(texts, 2);
  daemon.expect_checkpoint("10001");
  daemon.expect_status("processRecords");
  daemon.answer();
  const std::size_t with_batch = daemon.peak_resident_kib();
  const std::size_t slack = 3000;  // KiB
  SECTION("after 16 smaller lines") {
    for (std::uint64_t i = 0; i < 17; ++i) {
      daemon.records({"s"}, 10002 + i);
      daemon.expect_checkpoint(std::to_string(10002 + i));
      daemon.expect_status("processRecords");
      daemon.answer();
    }
    // Its answer comes after the batch's memory went back.
    daemon.send(R"({"action":"ping"})");
    daemon.expect_status("ping");
  }
  CAPTURE(before, with_batch, slack);
#ifndef KCLXX_IS_SANITIZED  // a sanitizer keeps memory that was freed
  SECTION("after a second of idleness") {
    eventually([&] { return daemon.resident_kib() < before + slack; }, 60s);
  }
  CHECK(with_batch > before + 10000);
  CHECK(daemon.resident_kib() < before + slack);
#endif
}
