// SPDX-License-Identifier: Apache-2.0
// A real child on real pipes: the dialogue, and what ends it.
#include <chrono>
#include <signal.h>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;

TEST_CASE("a shard is processed, checkpointed and ended", "[process][P1][P47]") {
  started_child daemon({"fast_retry"});
  daemon.records({"one", "two"}, 100);
  daemon.expect_checkpoint("101");
  daemon.expect_status("processRecords");
  daemon.answer();
  daemon.shard_ended();
  daemon.expect_null_checkpoint();
  daemon.answer("ThrottlingException");
  daemon.expect_null_checkpoint();  // so no status came before the answer
  daemon.answer();
  daemon.expect_status("shardEnded");
  CHECK(daemon.end() == 0);
  CHECK(daemon.rest().empty());
}

TEST_CASE("what a callback prints does not disturb the dialogue, and is seen on stderr",
          "[process][P4]") {
  started_child daemon;
  daemon.records({"printf", "cout", "write to 1"});
  daemon.expect_checkpoint("3");
  daemon.expect_status("processRecords");
  daemon.answer();
  CHECK(daemon.end() == 0);
  CHECK(daemon.rest().find_first_not_of('\n') == std::string::npos);
  const std::string printed = daemon.stderr_so_far();
  CHECK(contains(printed, R"("responseFor":"printf")"));
  CHECK(contains(printed, "partial text without a newline"));
  CHECK(contains(printed, "raw"));
  CHECK(contains(printed, "printed before run, not flushed"));
}

TEST_CASE("SIGTERM and its like, to the whole group, do not end the child", "[process][P32]") {
  started_child daemon;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) daemon.signal_group(signal);
  daemon.shutdown_requested();
  daemon.expect_status("shutdownRequested");
  daemon.await_stderr("shutdown requested");
  daemon.signal_group(SIGTERM);
  CHECK(daemon.end() == 0);
}

TEST_CASE("a program that a callback starts has default signals, no stdin, and no way in",
          "[process][P4][P5][P32]") {
  started_child daemon;
  daemon.records({"run a program"});
  daemon.expect_checkpoint("1");
  daemon.expect_status("processRecords");
  const std::string seen = daemon.await_stderr("batch of 1");
  CHECK(contains(seen, "stdin ended"));
  CHECK(contains(seen, "SigBlk:\t0000000000000000"));
  const auto ignored = std::stoull(seen.substr(seen.find("SigIgn:") + 7), nullptr, 16);
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM}) {
    CHECK((ignored >> (signal - 1) & 1) == 0);
  }
  CHECK(contains(seen, " 0 -> /dev/null"));
  // Descriptors 1 and 2 are the same pipe, stderr.
  const auto target = [&](const std::string& fd) {
    const auto at = seen.find(" " + fd + " -> pipe:");
    REQUIRE(at != std::string::npos);
    return seen.substr(at + 5 + fd.size(), seen.find('\n', at) - at - 5 - fd.size());
  };
  CHECK(target("1") == target("2"));
// UndefinedBehaviorSanitizer finds out with a pipe, in any thread, whether memory can be read.
#if !defined(KCLXX_IS_SANITIZED)
  for (int fd = 3; fd < 256; ++fd) {
    CHECK_FALSE(contains(seen, " " + std::to_string(fd) + " -> pipe:"));
  }
#endif
}

TEST_CASE("a full stdout, blocking or not, holds up neither the exit nor, once read, a line",
          "[process][P31]") {
  const bool is_non_blocking = GENERATE(false, true);
  CAPTURE(is_non_blocking);
  started_child daemon({"manual"}, {.stdout_is_non_blocking = is_non_blocking});
  const int actions = 2000;  // whose statuses are more than a pipe holds
  for (int i = 0; i < actions; ++i) {
    daemon.send(R"({"action":"tuneUp)" + std::to_string(i) + R"("})");
  }
  SECTION("the input ends") {
    daemon.close_input();
    CHECK(daemon.wait_exit(10s) == 0);
  }
  SECTION("the daemon reads") {
    for (int i = 0; i < actions; ++i) daemon.expect_status("tuneUp" + std::to_string(i));
    daemon.process({"a"});
    CHECK(daemon.end() == 0);
  }
}

TEST_CASE("the end of the input ends the process in time, with its status",
          "[process][P31][P56][P57]") {
  started_child daemon({"short_grace"});
  SECTION("in the middle of a line, also after a record: 12") {
    daemon.send_raw(
        GENERATE(R"({"action":"processRec)",
                 R"({"action":"processRecords","records":[{"data":"YQ==","sequenceNumber":"1"})"));
    CHECK(daemon.end() == 12);
    CHECK(contains(daemon.stderr_so_far(), "middle of a line"));
  }
  SECTION("in a callback that does not return: 13") {
    daemon.records({"sleep"});
    CHECK(daemon.end() == 13);
    CHECK(contains(daemon.stderr_so_far(), "did not return within the grace time"));
  }
  SECTION("while a checkpoint is awaited: the callback learns it, 12") {
    daemon.records({"checkpoint"}, 5);
    daemon.expect_checkpoint("5");
    CHECK(daemon.end() == 12);
    CHECK(contains(daemon.stderr_so_far(), "checkpoint failed: the daemon is gone"));
  }
}

TEST_CASE("the names that the launcher exports reach the processor, others are not known",
          "[process][own-process][P34]") {
  scripted_daemon told({child}, {"", {"KCLXX_STREAM_NAME=orders"}});
  start(told);
  told.await_stderr("shard shardId-000000000007 of orders");
  started_child untold;
  untold.await_stderr("shard shardId-000000000007 of ?");
}

// A child whose stderr is a full pipe that nobody reads.
namespace {

const scripted_daemon::start_options full_stderr{
    .input_file = {}, .environment = {"QUIET=1"}, .stderr_is_full = true};
const std::string blank_line = "   ";  // the child logs it

}  // namespace

TEST_CASE("a stderr that nobody reads holds up neither the dialogue nor its end",
          "[process][P31]") {
  scripted_daemon daemon({child, "at_once"}, full_stderr);
  start(daemon);
  daemon.send(blank_line);
  daemon.records({"checkpoint"});
  daemon.expect_checkpoint("1");
  daemon.answer("ThrottlingException");  // logged, too
  daemon.expect_checkpoint("1");
  daemon.answer();
  daemon.expect_status("processRecords");
  daemon.close_input();
  CHECK(daemon.wait_exit() == 0);
}

TEST_CASE("a child that nobody's stderr hears from leaves with the status of its failure",
          "[process][P53][P57]") {
  const auto [option, record, status] = GENERATE(
      table<std::string, std::string, int>({{"at_once", "throw", 10},
                                            {"short_grace", "sleep", 13},
                                            {"short_grace", "hang in the destructor", 13}}));
  scripted_daemon daemon({child, option}, full_stderr);
  start(daemon);
  daemon.send(blank_line);
  daemon.records({record});
  if (status == 13) daemon.close_input();  // before the exception it would be status 12
  CHECK(daemon.wait_exit() == status);
}
