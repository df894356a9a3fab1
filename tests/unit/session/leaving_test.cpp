// SPDX-License-Identifier: Apache-2.0
// What follows when the session leaves, or cannot go on: nothing twice, and nothing left waiting.
#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using kclxx::session::timer;
using kclxx::test::at;
using kclxx::test::manual;
using kclxx::test::mentions;
using kclxx::test::session_dialogue;
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
  CHECK(daemon.log.empty());
}

TEST_CASE("a second exception while the first one's checkpoint is persisted is logged, no more",
          "[session][P45]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.submit(at("40")) == lines{});
  CHECK(daemon.throws() == lines{"request stop", "write checkpoint 40/0"});
  daemon.armed.clear();
  daemon.log.clear();
  CHECK(daemon.throws() == lines{});
  CHECK(daemon.log == lines{"log: oops"});
  CHECK(daemon.armed.empty());
  CHECK(daemon.answer() == lines{"leave with 10"});
}

TEST_CASE("what is not persisted when shard_ended throws is reported", "[session][P49]") {
  session_dialogue daemon(manual(1min));
  daemon.start_batch("100");
  daemon.submit(at("100"));
  daemon.returns();
  daemon.answer();
  daemon.records("200");
  daemon.submit(at("200"));
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

TEST_CASE("a deadline after the answer is none", "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.checkpoint(1);
  daemon.answer();
  CHECK(daemon.deadline_passes(1) == lines{});
  CHECK_FALSE(daemon.was_waiting);
}
