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
  CHECK(daemon.failure() == lines{"request stop"});
  daemon.armed.clear();
  CHECK(daemon.bad_line() == lines{});
  CHECK(daemon.armed.empty());  // the grace time is that of the first failure
  daemon.log.clear();
  CHECK(daemon.broken_output() == lines{});  // expected while the session leaves
  CHECK(daemon.log.empty());
  CHECK(daemon.returns() == lines{"leave with 16"});
  CHECK(daemon.broken_output() == lines{});
  CHECK(daemon.bad_line() == lines{});
  CHECK(daemon.failure() == lines{});
  CHECK(daemon.throws_lease_gone_elsewhere() == lines{});
  CHECK(daemon.async_checkpoint(at("100"), false) == lines{});
  CHECK(daemon.log.empty());
  CHECK(daemon.fires(timer::grace) == lines{});
}

TEST_CASE("what is asked of a session that leaves fails at once", "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.failure() == lines{"request stop"});
  const std::string gone = make_error_code(kclxx::errc::daemon_gone).message();
  CHECK(daemon.checkpoint(1) == lines{"complete 1: " + gone});
  CHECK(daemon.async_checkpoint(2, std::nullopt) == lines{"complete 2: " + gone});
  CHECK(daemon.async_checkpoint() == lines{});
  CHECK(daemon.no_records() == lines{});  // and a line is not acted upon
  CHECK(daemon.returns() == lines{"leave with 16"});
  CHECK(daemon.checkpoint(3, std::nullopt, false) == lines{"complete 3: " + gone});
}

TEST_CASE("a callback that throws while a checkpoint is unanswered waits for the answer",
          "[session][P53]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1, at("40"), false) == lines{"write checkpoint 40/0"});
  CHECK(daemon.throws() == lines{"request stop"});
  SECTION("and leaves") {
    CHECK(daemon.answer() == lines{"complete 1: persisted", "leave with 10"});
  }
  SECTION("and persists what else is complete") {
    CHECK(daemon.async_checkpoint(at("60"), false) == lines{});
    CHECK(daemon.answer() == lines{"complete 1: persisted", "write checkpoint 60/0"});
    CHECK(daemon.answer() == lines{"leave with 10"});
  }
}

TEST_CASE("when user code gives its shard up twice, the first reason is kept", "[session][P67]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.throws_lease_gone_elsewhere() == lines{"request stop"});
  CHECK(daemon.throws_lease_gone() == lines{"write status processRecords"});
  daemon.now += 90s;
  daemon.log.clear();
  CHECK(daemon.records("200") == lines{"write status processRecords"});
  CHECK(daemon.log ==
        lines{"log warning: records up to 200/0 are answered, but not processed: fenced"});
}

TEST_CASE("a file that continues instead of an answer ends what waited for it", "[session][P58]") {
  session_dialogue file(manual(), true);
  file.start_batch("100");
  const std::string lease_lost = make_error_code(kclxx::errc::lease_lost).message();
  SECTION("a call, which hears of a lost lease at once") {
    CHECK(file.checkpoint(1) == lines{"write checkpoint 100/0"});
    CHECK(file.lease_lost() == lines{"pause reading", "complete 1: " + lease_lost});
    CHECK(file.checkpoint(2) == lines{"complete 2: " + lease_lost});
    CHECK(file.returns() == lines{"write status processRecords", "resume reading", "request stop",
                                  "call lease_lost"});
  }
  SECTION("a callback that threw") {
    file.async_checkpoint(at("40"));
    CHECK(file.throws() == lines{"request stop", "write checkpoint 40/0"});
    CHECK(file.no_records() == lines{"pause reading", "leave with 10"});
  }
  SECTION("a shutdown request") {
    file.async_checkpoint(at("100"));
    file.returns();
    file.answer("ThrottlingException");
    file.shutdown_requested();
    CHECK(file.returns() == lines{});
    CHECK(file.fires(timer::retry) == lines{"write checkpoint 100/0"});
    CHECK(file.no_records() == lines{"pause reading", "write status shutdownRequested",
                                     "resume reading", "call process_records with 0"});
    CHECK(mentions(file.log, "100/0 are complete but not checkpointed"));
  }
  SECTION("a shutdown request whose callback runs still") {
    file.returns();
    file.shutdown_requested();
    file.async_checkpoint(at("100"));
    CHECK(file.no_records() == lines{"pause reading"});
    CHECK(file.returns() ==
          lines{"write status shutdownRequested", "resume reading", "call process_records with 0"});
    CHECK(mentions(file.log, "100/0 are complete but not checkpointed"));
  }
}

TEST_CASE("an answer that a file has ahead of its question is taken once", "[session][P58]") {
  session_dialogue file(manual(), true);
  file.start_batch("100");
  SECTION("in a shutdown request") {
    file.returns();
    file.shutdown_requested();
    file.async_checkpoint(at("100"));
    CHECK(file.answer() == lines{"pause reading"});
    CHECK(file.returns() ==
          lines{"write checkpoint 100/0", "resume reading", "write status shutdownRequested"});
  }
  SECTION("by a callback that threw") {
    file.async_checkpoint(at("100"));
    CHECK(file.answer() == lines{"pause reading"});
    CHECK(file.throws() ==
          lines{"request stop", "write checkpoint 100/0", "resume reading", "leave with 10"});
  }
}

TEST_CASE("at the end of a file the line that is held is still worked off", "[session][P58]") {
  session_dialogue file(manual(), true);
  file.start_batch("100");
  CHECK(file.records("200") == lines{"pause reading"});
  CHECK(file.end_of_input() == lines{});
  CHECK(file.checkpoint(1) ==
        lines{"complete 1: " + make_error_code(kclxx::errc::daemon_gone).message()});
  CHECK(file.returns() ==
        lines{"write status processRecords", "resume reading", "call process_records with 0"});
  CHECK(file.returns() == lines{"write status processRecords", "request stop", "leave with 0"});
}

TEST_CASE("the end of a file ends a callback that threw", "[session][P58]") {
  session_dialogue file(manual(), true);
  file.start_batch("100");
  file.async_checkpoint(at("40"));
  CHECK(file.throws() == lines{"request stop", "write checkpoint 40/0"});
  CHECK(file.end_of_input() == lines{"leave with 10"});
}

TEST_CASE("a second exception while the first one's checkpoint is persisted is logged, no more",
          "[session][P45]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.async_checkpoint(at("40")) == lines{});
  CHECK(daemon.throws() == lines{"request stop", "write checkpoint 40/0"});
  daemon.armed.clear();
  daemon.log.clear();
  CHECK(daemon.throws() == lines{});
  CHECK(daemon.log == lines{"log error: oops"});
  CHECK(daemon.armed.empty());
  CHECK(daemon.answer() == lines{"leave with 10"});
}

TEST_CASE("what is not persisted when shard_ended throws is reported", "[session][P49]") {
  session_dialogue daemon(manual(1min));
  daemon.start_batch("100");
  daemon.async_checkpoint(at("100"));
  daemon.returns();
  daemon.answer();
  daemon.records("200");
  daemon.async_checkpoint(at("200"));
  CHECK(daemon.returns() == lines{"write status processRecords"});  // the pace holds it back
  daemon.shard_ended();
  CHECK(daemon.throws() == lines{"request stop", "leave with 10"});
  CHECK(mentions(daemon.log, "200/0"));
}

TEST_CASE("nothing waits for an answer at the end of a file", "[session][P58]") {
  session_dialogue daemon(manual(), true);
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1, at("50")) == lines{"write checkpoint 50/0"});
  CHECK(daemon.checkpoint(2, at("60"), false) == lines{});
  const lines ended = daemon.end_of_input();
  CHECK(ended.size() == 2);
  CHECK(mentions(ended, "complete 1: "));
  CHECK(mentions(ended, "complete 2: "));
}

TEST_CASE("a checkpoint in a file that continues without its answer is completed once",
          "[session][P58]") {
  session_dialogue daemon(manual(), true);
  daemon.start_batch("100");
  daemon.records("200");  // held
  const lines completed = daemon.checkpoint(1);
  CHECK(completed.size() == 1);
  CHECK(mentions(completed, "complete 1: "));
  CHECK_FALSE(mentions(daemon.returns(), "complete"));
  CHECK_FALSE(mentions(daemon.returns(), "complete"));
  CHECK_FALSE(mentions(daemon.end_of_input(), "complete"));
}

TEST_CASE("an answer at another position persists nothing", "[session][P39]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1) == lines{"write checkpoint 100/0"});
  const lines failed = daemon.answer_for(at("70"));
  REQUIRE(failed.size() == 2);
  CHECK(failed[0].starts_with("complete 1: "));
  CHECK_FALSE(failed[0] == "complete 1: persisted");
  CHECK(failed[1] == "request stop");
}

TEST_CASE("a file that continues after an incomplete end of the shard is reported once",
          "[session][P47][P58]") {
  session_dialogue daemon(manual(), true);
  daemon.start_batch("100");
  daemon.returns();
  daemon.shard_ended();
  daemon.no_records();  // held
  daemon.armed.clear();
  CHECK(daemon.returns() == lines{"request stop", "leave with 14"});
  CHECK(daemon.log.size() == 1);
  CHECK(daemon.armed.empty());
}

TEST_CASE("a deadline that passes after the answer does nothing", "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.checkpoint(1);
  daemon.answer();
  CHECK(daemon.deadline_passes(1) == lines{});
  CHECK_FALSE(daemon.was_waiting);
}
