// SPDX-License-Identifier: Apache-2.0
// Which callback, status and exit follow which line.
#include <array>

#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using kclxx::errc;
using kclxx::record_batch;
using kclxx::run_options;
using kclxx::sequence_position;
using kclxx::protocol::action_kind;
using kclxx::protocol::initialize;
using kclxx::protocol::process_records;
using kclxx::session::actions;
using kclxx::session::call;
using namespace kclxx::test;
using lines = session_dialogue::lines;

namespace {

run_options every_batch() {
  run_options options;
  options.checkpoint_interval = std::chrono::milliseconds(0);
  return options;
}

}  // namespace

TEST_CASE("each action calls its callback, and its return is answered by the action's name",
          "[session][P18][P24]") {
  session_dialogue daemon;
  CHECK(daemon.initialize() == lines{"call initialize"});
  CHECK(daemon.returns() == lines{"write status initialize"});
  CHECK(daemon.no_records() == lines{"call process_records with 0"});
  CHECK(daemon.returns() == lines{"write status processRecords"});
  CHECK(daemon.shutdown_requested() == lines{"call shutdown_requested"});
  CHECK(daemon.returns() == lines{"write status shutdownRequested"});
  CHECK(daemon.lease_lost() == lines{"request stop", "call lease_lost"});
  CHECK(daemon.returns() == lines{"write status leaseLost"});
  CHECK(daemon.end_of_input() == lines{"leave with 0"});
}

TEST_CASE("the older shutdown is answered by its own name", "[session][P11]") {
  session_dialogue daemon;
  daemon.initialize();
  daemon.returns();
  CHECK(daemon.older_shutdown() == lines{"request stop", "call lease_lost"});
  CHECK(daemon.returns() == lines{"write status shutdown"});
}

TEST_CASE("an unknown action is logged and answered, and the dialogue continues",
          "[session][P29]") {
  session_dialogue daemon;
  CHECK(daemon.unknown("hello") == lines{"write status hello"});
  CHECK(mentions(daemon.log, "hello"));
  daemon.initialize();
  daemon.returns();
  CHECK(daemon.unknown("tuneUp") == lines{"write status tuneUp"});
  CHECK(daemon.no_records() == lines{"call process_records with 0"});
}

TEST_CASE("an unknown action after the last one of the shard is answered too", "[session][P29]") {
  session_dialogue daemon;
  daemon.initialize();
  daemon.returns();
  daemon.lease_lost();
  daemon.returns();
  CHECK(daemon.unknown("goodbye") == lines{"write status goodbye"});
}

TEST_CASE("an action out of place ends the process with a protocol error", "[session][P54]") {
  session_dialogue daemon;
  SECTION("processRecords before initialize") {
    CHECK(daemon.no_records() == lines{"request stop", "leave with 11"});
    CHECK(mentions(daemon.log, "processRecords before initialize"));
  }
  SECTION("initialize a second time") {
    daemon.initialize();
    daemon.returns();
    CHECK(daemon.initialize() == lines{"request stop", "leave with 11"});
    CHECK(mentions(daemon.log, "initialize a second time"));
  }
  SECTION("processRecords after leaseLost") {
    daemon.initialize();
    daemon.returns();
    daemon.lease_lost();
    daemon.returns();
    CHECK(daemon.no_records() == lines{"leave with 11"});
    CHECK(mentions(daemon.log, "after the last action"));
  }
  SECTION("an answer that was not asked for") {
    daemon.initialize();
    daemon.returns();
    CHECK(daemon.answer() == lines{"request stop", "leave with 11"});
    CHECK(mentions(daemon.log, "not asked for"));
  }
}

TEST_CASE("a callback that throws never yields a status", "[session][P53]") {
  session_dialogue daemon;
  daemon.initialize();
  SECTION("in initialize") {
    CHECK(daemon.throws() == lines{"request stop", "leave with 10"});
    CHECK(mentions(daemon.log, "oops"));
  }
  SECTION("in process_records") {
    daemon.returns();
    daemon.records("100");
    CHECK(daemon.throws() == lines{"request stop", "leave with 10"});
  }
  SECTION("in lease_lost") {
    daemon.returns();
    daemon.lease_lost();
    CHECK(daemon.throws() == lines{"leave with 10"});
  }
  SECTION("in shard_ended, where no checkpoint may be sent either") {
    daemon.returns();
    daemon.records("100");
    daemon.returns();
    daemon.answer("ThrottlingException");
    daemon.shard_ended();
    CHECK(daemon.throws() == lines{"request stop", "leave with 10"});
  }
  SECTION("in shutdown_requested") {
    daemon.returns();
    daemon.shutdown_requested();
    CHECK(daemon.throws() == lines{"request stop", "leave with 10"});
  }
}

TEST_CASE("before it leaves, a failed batch has the earlier ones checkpointed", "[session][P53]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.returns() == lines{"write checkpoint 100/0", "write status processRecords"});
  daemon.answer();
  daemon.records("200");
  CHECK(daemon.returns() == lines{"write status processRecords"});  // within the interval
  daemon.records("300");
  CHECK(daemon.throws() == lines{"request stop", "write checkpoint 200/0"});
  SECTION("and leaves when that is answered") { CHECK(daemon.answer() == lines{"leave with 10"}); }
  SECTION("or refused") { CHECK(daemon.answer("ThrottlingException") == lines{"leave with 10"}); }
  SECTION("or not answered within the grace time") {
    CHECK(daemon.fires(kclxx::session::timer::grace) == lines{"leave with 10"});
  }
  SECTION("or the daemon is gone") { CHECK(daemon.end_of_input() == lines{"leave with 10"}); }
}

TEST_CASE("a callback that fails since the lease is gone is answered all the same",
          "[session][P42]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  SECTION("after the daemon reported it") {
    daemon.checkpoint(1);
    daemon.answer("ShutdownException");
    CHECK(daemon.throws_lease_gone() == lines{"write status processRecords"});
  }
  SECTION("before the daemon reports it; a checkpoint that was sent is still answered") {
    daemon.async_checkpoint(at("100"), false);
    daemon.callback_lasts();
    CHECK(daemon.throws_lease_gone() == lines{"request stop", "write status processRecords"});
    CHECK(daemon.answer("ShutdownException") == lines{});
  }
  CHECK(mentions(daemon.log, "lease gone"));
  CHECK(daemon.records("200") == lines{"write status processRecords"});
  CHECK(daemon.lease_lost() == lines{"call lease_lost"});
}

TEST_CASE("a processor that gave its shard up is called only for leaseLost",
          "[session][P65][P67]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  enum class where { callback, during_callback, between_actions };
  switch (GENERATE(where::callback, where::during_callback, where::between_actions)) {
    case where::callback:
      CHECK(daemon.throws_lease_gone() == lines{"request stop", "write status processRecords"});
      break;
    case where::during_callback:
      CHECK(daemon.throws_lease_gone_elsewhere() == lines{"request stop"});
      CHECK(daemon.returns() == lines{"write status processRecords"});
      break;
    case where::between_actions:
      daemon.returns();
      daemon.answer();
      CHECK(daemon.throws_lease_gone_elsewhere() == lines{"request stop"});
      break;
  }
  CHECK(daemon.records("200") == lines{"write status processRecords"});
  CHECK(daemon.no_records() == lines{"write status processRecords"});
  CHECK(daemon.checkpoint(1, at("100"), false) ==
        lines{"complete 1: " + make_error_code(errc::lease_lost).message()});
  SECTION("and the daemon sends leaseLost") {
    CHECK(daemon.lease_lost() == lines{"call lease_lost"});
    CHECK(daemon.returns() == lines{"write status leaseLost"});
  }
  SECTION("and the worker stops") {
    CHECK(daemon.shutdown_requested() == lines{"write status shutdownRequested"});
  }
  CHECK(daemon.end_of_input() == lines{"leave with 0"});
}

TEST_CASE("without a processor leaseLost is answered, too", "[session][P67]") {
  session_dialogue daemon;
  daemon.initialize();
  CHECK(daemon.throws_lease_gone() == lines{"request stop", "write status initialize"});
  CHECK(daemon.records("200") == lines{"write status processRecords"});
  CHECK(daemon.lease_lost() == lines{"write status leaseLost"});
  CHECK(daemon.end_of_input() == lines{"leave with 0"});
}

TEST_CASE("records that are answered without a call are logged every minute", "[session][P67]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.throws_lease_gone();
  CHECK(daemon.log.size() == 1);
  daemon.now += std::chrono::seconds(59);
  daemon.records("200");
  CHECK(daemon.log.size() == 1);
  daemon.now += std::chrono::seconds(1);
  daemon.no_records();
  CHECK(daemon.log.size() == 1);
  daemon.records("300");
  daemon.records("400");
  REQUIRE(daemon.log.size() == 2);
  CHECK(daemon.log.back() ==
        "log warning: records up to 300/0 are answered, but not processed: lease gone");
}

TEST_CASE("a processor that gave its shard up leaves when records still arrive after minutes",
          "[session][P68]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.async_checkpoint();
  SECTION("since the worker has the lease, it seems") {
    daemon.callback_lasts();
    daemon.throws_lease_gone();
    daemon.answer();
    daemon.now += kclxx::session::give_up_patience;
    CHECK(daemon.no_records() == lines{"write status processRecords"});
    CHECK(daemon.records("200") == lines{"leave with 10"});
    CHECK(mentions(daemon.log, "records still arrive, so this worker has the lease: leaving"));
  }
  SECTION("but not when the daemon itself reported that the lease is lost") {
    daemon.callback_lasts();
    daemon.throws_lease_gone();
    daemon.answer("ShutdownException");
    daemon.now += kclxx::session::give_up_patience;
    CHECK(daemon.records("200") == lines{"write status processRecords"});
  }
}

TEST_CASE("the end of a shard that was given up is not reported without a lost lease",
          "[session][P67][P50]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  SECTION("when the daemon has reported it, the status follows") {
    daemon.checkpoint(1);
    daemon.answer("ShutdownException");
    daemon.throws_lease_gone();
    CHECK(daemon.shard_ended() == lines{"write status shardEnded"});
  }
  SECTION("given up before") {
    daemon.throws_lease_gone();
    CHECK(daemon.shard_ended() == lines{"leave with 14"});
  }
  SECTION("given up in shard_ended") {
    daemon.returns();
    daemon.answer();
    daemon.shard_ended();
    CHECK(daemon.throws_lease_gone() == lines{"request stop", "leave with 14"});
    CHECK(mentions(daemon.log, "the end of the shard is not checkpointed"));
  }
  SECTION("given up while the end of the shard is being checkpointed") {
    daemon.returns();
    daemon.answer();
    daemon.shard_ended();
    daemon.returns();
    CHECK(daemon.throws_lease_gone_elsewhere() == lines{"request stop"});
    CHECK(daemon.answer("ThrottlingException") == lines{"leave with 14"});
  }
  SECTION("given up while it is being checkpointed, which succeeds") {
    daemon.returns();
    daemon.answer();
    daemon.shard_ended();
    daemon.returns();
    daemon.throws_lease_gone_elsewhere();
    CHECK(daemon.answer() == lines{"write status shardEnded"});
  }
}

TEST_CASE("an exception of a timer while no action is open ends the session", "[session][P53]") {
  session_dialogue daemon;
  daemon.initialize();
  daemon.returns();
  CHECK(daemon.throws() == lines{"request stop", "leave with 10"});
  CHECK(mentions(daemon.log, "oops"));
}

TEST_CASE("after the end nothing more happens", "[session]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.failure();
  CHECK(daemon.returns() == lines{"leave with 16"});
  CHECK(daemon.returns() == lines{});
  CHECK(daemon.throws() == lines{});
  CHECK(daemon.throws_lease_gone() == lines{});
  CHECK(daemon.bad_line() == lines{});
  CHECK(daemon.failure() == lines{});
  CHECK(daemon.broken_output() == lines{});
  CHECK(daemon.end_of_input() == lines{});
  CHECK(daemon.no_records() == lines{});
}

TEST_CASE("a process that cannot continue fails what waits, and leaves", "[session][P59]") {
  session_dialogue daemon(kclxx::test::manual());
  const std::string gone = make_error_code(errc::daemon_gone).message();
  daemon.start_batch("100");
  daemon.async_checkpoint(1, at("50"));
  SECTION("when the running callback has returned") {
    daemon.checkpoint(2, at("100"));
    CHECK(daemon.failure() == lines{"complete 2: " + gone, "complete 1: " + gone, "request stop"});
    CHECK(mentions(daemon.log, "no memory"));
    CHECK(daemon.returns() == lines{"leave with 16"});
  }
  SECTION("at once while none runs") {
    daemon.returns();
    CHECK(daemon.failure() == lines{"complete 1: " + gone, "request stop", "leave with 16"});
  }
}

TEST_CASE("the end of input leads out at every step", "[session][P31][P56][P57]") {
  session_dialogue daemon;
  SECTION("before initialize") {
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
  }
  SECTION("while idle") {
    daemon.initialize();
    daemon.returns();
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
  }
  SECTION("while a callback runs, after it returned") {
    daemon.initialize();
    CHECK(daemon.end_of_input() == lines{"request stop"});
    CHECK(mentions(daemon.armed, "arm grace timer 10000 ms"));
    CHECK(daemon.returns() == lines{"leave with 12"});
  }
  SECTION("while a callback runs, after it threw") {
    daemon.initialize();
    daemon.end_of_input();
    CHECK(daemon.throws() == lines{"leave with 12"});
    CHECK(mentions(daemon.log, "oops"));
  }
  SECTION("while a callback runs without end") {
    daemon.initialize();
    daemon.end_of_input();
    CHECK(daemon.fires(kclxx::session::timer::grace) == lines{"leave with 13"});
  }
  SECTION("while a checkpoint is awaited in a callback") {
    daemon.start_batch("100");
    daemon.checkpoint(1);
    CHECK(daemon.end_of_input() ==
          lines{"complete 1: " + make_error_code(errc::daemon_gone).message(), "request stop"});
    CHECK(daemon.returns() == lines{"leave with 12"});
  }
  SECTION("while the end of the shard is awaited") {
    daemon.initialize();
    daemon.returns();
    daemon.shard_ended();
    daemon.returns();
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 12"});
  }
  SECTION("while the answer to a checkpoint that went with the status is due") {
    daemon.start_batch("100");
    daemon.returns();
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
    CHECK(mentions(daemon.log, "did not answer the checkpoint at 100/0"));
  }
  SECTION("in the middle of a line") {
    daemon.initialize();
    daemon.returns();
    CHECK(daemon.end_of_input(true) == lines{"request stop", "leave with 12"});
  }
}

TEST_CASE("a bad line or a broken output waits for a running callback, within the grace time",
          "[session]") {
  session_dialogue daemon;
  daemon.initialize();
  SECTION("bad line") {
    CHECK(daemon.bad_line() == lines{"request stop"});
    CHECK(daemon.returns() == lines{"leave with 11"});
  }
  SECTION("broken output") {
    CHECK(daemon.broken_output() == lines{"request stop"});
    CHECK(daemon.returns() == lines{"leave with 12"});
  }
}

TEST_CASE("one action may be queued while another is open, and reading stops until it is closed",
          "[session]") {
  session_dialogue daemon(every_batch());
  daemon.initialize();
  CHECK(daemon.no_records() == lines{"pause reading"});
  CHECK(daemon.returns() ==
        lines{"write status initialize", "resume reading", "call process_records with 0"});
  SECTION("the daemon's death is noticed all the same") {
    CHECK(daemon.no_records() == lines{"pause reading"});
    CHECK(daemon.end_of_input() == lines{"request stop"});
    CHECK(daemon.returns() == lines{"leave with 12"});
  }
}

TEST_CASE("a plain file as input is worked off in order, and ends with 0", "[session][P58]") {
  session_dialogue file(every_batch(), true);
  file.initialize();
  file.records("100");
  file.returns();
  CHECK(file.answer() == lines{"pause reading"});  // ahead of the question
  CHECK(file.returns() ==
        lines{"write checkpoint 100/0", "resume reading", "write status processRecords"});
  file.shard_ended();
  file.answer();
  CHECK(file.returns() ==
        lines{"write checkpoint SHARD_END/0", "resume reading", "write status shardEnded"});
  CHECK(file.end_of_input() == lines{"request stop", "leave with 0"});
}

TEST_CASE("the end of a plain file waits for its turn", "[session][P58]") {
  session_dialogue file({}, true);
  file.initialize();
  SECTION("after a callback") {
    CHECK(file.end_of_input() == lines{});
    CHECK(file.returns() == lines{"write status initialize", "request stop", "leave with 0"});
  }
  SECTION("after a line that opens nothing") {
    file.returns();
    file.no_records();
    file.unknown("tuneUp");
    CHECK(file.end_of_input() == lines{});
    CHECK(file.returns() == lines{"write status processRecords", "resume reading",
                                  "write status tuneUp", "request stop", "leave with 0"});
  }
  SECTION("but fails what waits for an answer") {
    file.returns();
    file.records("100");
    file.checkpoint(7);
    CHECK(file.end_of_input() ==
          lines{"complete 7: " + make_error_code(errc::daemon_gone).message()});
  }
  SECTION("and the end of a shard that nobody answers is a failure") {
    file.returns();
    file.shard_ended();
    CHECK(file.returns() == lines{"write checkpoint SHARD_END/0"});
    CHECK(file.end_of_input() == lines{"request stop", "leave with 14"});
  }
}

TEST_CASE("a plain file may hold answers that were not asked for", "[session][P58]") {
  session_dialogue file({}, true);
  file.initialize();
  file.returns();
  CHECK(file.answer() == lines{});
  CHECK(mentions(file.log, "skipped"));
  file.no_records();
  CHECK(file.answer() == lines{"pause reading"});
  CHECK(file.returns() == lines{"write status processRecords", "resume reading"});
}

TEST_CASE("initialize is called with the shard's id and where reading begins", "[session][P6]") {
  kclxx::session::session session{run_options()};
  actions told;
  const sequence_position start("100", 7);
  session.on_message({"initialize", initialize{"shardId-0", start}}, {}, {}, told);
  CHECK((told == actions{call{action_kind::initialize, {}, "shardId-0", start}}));
}

TEST_CASE("process_records is called with the records of the line", "[session][P7]") {
  kclxx::session::session session{run_options()};
  actions told;
  session.on_message({"initialize", initialize{"shardId-0", {}}}, {}, {}, told);
  session.on_callback_returned({}, told);
  told.clear();
  kclxx::record::fields fields;
  fields.sequence_number = "100";
  const std::array records{kclxx::record(fields), kclxx::record(fields)};
  const record_batch batch(records, nullptr);
  const process_records line{{}, sequence_position("100")};
  session.on_message({"processRecords", line}, batch, {}, told);
  CHECK((told == actions{call{action_kind::process_records, batch}}));
  CHECK_FALSE((told == actions{call{action_kind::process_records, batch.slice(1, 1)}}));
}
