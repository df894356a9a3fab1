// SPDX-License-Identifier: Apache-2.0
// What follows when the session leaves, or cannot continue: nothing twice, and nothing left
// waiting.
#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using kclxx::session::timer;
using namespace kclxx::test;
using lines = session_dialogue::lines;
using namespace std::chrono_literals;

TEST_CASE("the first failure decides, and a later one starts nothing again", "[session]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.failure() ==
        lines{"log error: no input", "request stop", "arm grace timer 10000 ms"});
  CHECK(daemon.bad_line() == lines{});
  CHECK(daemon.broken_output() == lines{});
  CHECK(daemon.returns() == lines{"leave with 12"});
  // After the end nothing more happens.
  CHECK(daemon.returns() == lines{});
  CHECK(daemon.throws() == lines{});
  CHECK(daemon.throws_lease_gone() == lines{});
  CHECK(daemon.end_of_input() == lines{});
  CHECK(daemon.no_records() == lines{});
  CHECK(daemon.broken_output() == lines{});
  CHECK(daemon.bad_line() == lines{});
  CHECK(daemon.failure() == lines{});
  CHECK(daemon.throws_lease_gone_elsewhere() == lines{});
  CHECK(daemon.async_checkpoint(at("100"), false) == lines{});
  CHECK(daemon.fires(timer::grace) == lines{});
}

TEST_CASE("a session that leaves waits for its callback, whatever else throws", "[session][P57]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.async_checkpoint(1, at("50"));
  const std::string gone = make_error_code(kclxx::errc::daemon_gone).message();
  CHECK(daemon.broken_output() == lines{"log error: cannot write to the daemon: broken pipe",
                                        "notify 1: " + gone, "request stop",
                                        "arm grace timer 10000 ms"});
  CHECK(daemon.throws_elsewhere() == lines{"log error: oops"});  // the handler that was notified
  SECTION("until it has returned") { CHECK(daemon.returns() == lines{"leave with 12"}); }
  SECTION("until it throws, too") {
    CHECK(daemon.throws() == lines{"log error: oops", "leave with 12"});
  }
  SECTION("or for the grace time") {
    CHECK(daemon.fires(timer::grace) ==
          lines{"log error: a callback did not return within the grace time", "leave with 13"});
  }
}

TEST_CASE("what is asked of a session that leaves fails at once", "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.failure() ==
        lines{"log error: no input", "request stop", "arm grace timer 10000 ms"});
  const std::string gone = make_error_code(kclxx::errc::daemon_gone).message();
  CHECK(daemon.checkpoint(1) == lines{"notify 1: " + gone});
  CHECK(daemon.async_checkpoint(2, std::nullopt) == lines{"notify 2: " + gone});
  CHECK(daemon.async_checkpoint() == lines{});
  CHECK(daemon.no_records() == lines{});  // and a line is not acted upon
  CHECK(daemon.returns() == lines{"leave with 12"});
  CHECK(daemon.checkpoint(3, std::nullopt, false) == lines{"notify 3: " + gone});
}

TEST_CASE("a callback that throws while a checkpoint is unanswered waits for the answer",
          "[session][P53]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1, at("40"), false) == lines{"write checkpoint 40/0"});
  CHECK(daemon.throws() == lines{"log error: oops", "request stop", "arm grace timer 10000 ms"});
  SECTION("and leaves") { CHECK(daemon.answer() == lines{"notify 1: persisted", "leave with 10"}); }
  SECTION("and persists nothing that was requested after the stop") {
    CHECK(daemon.async_checkpoint(at("60"), false) == lines{});
    CHECK(daemon.answer() == lines{"notify 1: persisted", "leave with 10"});
  }
}

TEST_CASE("when user code gives its shard up twice, the first reason is kept", "[session][P67]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.throws_lease_gone_elsewhere() ==
        lines{"log warning: fenced", "request stop", "end calls"});
  CHECK(daemon.throws_lease_gone() ==
        lines{"log warning: lease gone", "write status processRecords"});
  daemon.now += 90s;
  CHECK(daemon.records("200") ==
        lines{"log warning: records up to 200/0 are answered, but not processed: fenced",
              "write status processRecords"});
}

TEST_CASE("a second exception while the first one's checkpoint is persisted is logged, no more",
          "[session][P53]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.async_checkpoint(at("40")) == lines{});
  CHECK(daemon.throws() == lines{"log error: oops", "request stop", "arm grace timer 10000 ms",
                                 "write checkpoint 40/0"});
  CHECK(daemon.throws() == lines{"log error: oops"});
  CHECK(daemon.answer() == lines{"leave with 10"});
}

TEST_CASE("what is not persisted when shard_ended throws is reported", "[session][P53]") {
  session_dialogue daemon(manual(1min));
  daemon.start_batch("100");
  daemon.async_checkpoint(at("100"));
  daemon.returns();
  daemon.answer();
  daemon.records("200");
  daemon.async_checkpoint(at("200"));
  CHECK(daemon.returns() == lines{"write status processRecords"});  // the pace holds it back
  daemon.shard_ended();
  CHECK(daemon.throws() == lines{"log error: oops", "request stop",
                                 "log warning: records up to 200/0 are complete but not "
                                 "checkpointed: they will be delivered again",
                                 "leave with 10"});
}

TEST_CASE("a deadline that passes after the answer does nothing", "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.checkpoint(1);
  daemon.answer();
  CHECK(daemon.deadline_passes(1) == lines{});
  CHECK_FALSE(daemon.was_waiting);
}

TEST_CASE("an exception after the loss of the lease is no failure, but that of lease_lost is",
          "[session][P65]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.checkpoint(1);
  CHECK(daemon.answer("ShutdownException") ==
        lines{"log warning: the checkpoint at 100/0 failed: ShutdownException; this worker no "
              "longer holds the lease",
              "notify 1: ShutdownException: this worker no longer holds the lease; drop the work",
              "request stop"});
  SECTION("of a callback") {
    CHECK(daemon.throws() ==
          lines{"log warning: oops", "end calls", "write status processRecords"});
  }
  SECTION("elsewhere") {
    CHECK(daemon.throws_elsewhere() == lines{"log warning: oops", "end calls"});
    CHECK(daemon.throws() == lines{"log warning: oops", "write status processRecords"});
  }
  CHECK(daemon.lease_lost() == lines{"call lease_lost"});
  CHECK(daemon.throws() == lines{"log error: oops", "leave with 10"});
}

TEST_CASE(
    "a shard that is given up elsewhere while initialize runs has no processor if that throws",
    "[session][P67]") {
  session_dialogue daemon;
  daemon.initialize();
  CHECK(daemon.throws_lease_gone_elsewhere() ==
        lines{"log warning: fenced", "request stop", "end calls"});
  CHECK(daemon.throws() == lines{"log warning: oops", "write status initialize"});
  CHECK(daemon.lease_lost() == lines{"write status leaseLost"});
}
