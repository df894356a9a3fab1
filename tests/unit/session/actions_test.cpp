// SPDX-License-Identifier: Apache-2.0
// Which callback, status and exit follow which line.

#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using namespace kclxx;
using namespace kclxx::test;
using lines = session_dialogue::lines;

TEST_CASE("each action calls its callback, and its return is answered by the action's name",
          "[session][P18][P24]") {
  session_dialogue daemon;
  CHECK(daemon.initialize() == lines{"call initialize"});
  CHECK(daemon.returns() == lines{"write status initialize"});
  CHECK(daemon.no_records() == lines{"call process_records with 0"});
  CHECK(daemon.returns() == lines{"write status processRecords"});
  CHECK(daemon.shutdown_requested() == lines{"call shutdown_requested"});
  CHECK(daemon.returns() == lines{"write status shutdownRequested"});
  CHECK(daemon.lease_lost() == lines{"request stop", "end calls", "call lease_lost"});
  CHECK(daemon.returns() == lines{"write status leaseLost"});
  CHECK(daemon.end_of_input() == lines{"leave with 0"});
}

TEST_CASE("the older shutdown is answered by its own name", "[session][P11]") {
  session_dialogue daemon;
  daemon.open();
  CHECK(daemon.older_shutdown() == lines{"request stop", "end calls", "call lease_lost"});
  CHECK(daemon.returns() == lines{"write status shutdown"});
}

TEST_CASE("an unknown action is logged and answered, and the dialogue continues",
          "[session][P29]") {
  session_dialogue daemon;
  const auto answered = [](const std::string& name) {
    return lines{
        "log warning: the daemon sent an action that this version does not know; "
        "answering it: " +
            name,
        "write status " + name};
  };
  CHECK(daemon.unknown("hello") == answered("hello"));
  daemon.open();
  CHECK(daemon.unknown("tuneUp") == answered("tuneUp"));
  CHECK(daemon.no_records() == lines{"call process_records with 0"});
  daemon.returns();
  daemon.lease_lost();
  daemon.returns();
  CHECK(daemon.unknown("goodbye") == answered("goodbye"));  // after the last one of the shard
}

TEST_CASE("what the daemon names is cut in the log", "[session][P9][P29]") {
  session_dialogue daemon;
  const std::string name(1'000'000, 'a');
  const std::string ending = "... (1000000 bytes)";
  daemon.unknown(name);
  CHECK(daemon.log.back().ends_with(ending));
  CHECK(daemon.log.back().size() < 300);
  daemon.start_batch("100");
  daemon.checkpoint(1);
  daemon.answer(name);
  CHECK(daemon.log.back().ends_with(ending));
}

TEST_CASE("an action out of place ends the process with a protocol error", "[session][P54]") {
  session_dialogue daemon;
  SECTION("processRecords before initialize") {
    CHECK(daemon.no_records() ==
          lines{"log error: the daemon sent processRecords before initialize", "request stop",
                "leave with 11"});
  }
  SECTION("initialize a second time") {
    daemon.open();
    CHECK(daemon.initialize() == lines{"log error: the daemon sent initialize a second time",
                                       "request stop", "leave with 11"});
  }
  SECTION("processRecords after leaseLost") {
    daemon.open();
    daemon.lease_lost();
    daemon.returns();
    CHECK(daemon.no_records() ==
          lines{"log error: the daemon sent processRecords after the last action of the shard",
                "leave with 11"});
  }
}

TEST_CASE("a callback that throws never yields a status", "[session][P53]") {
  session_dialogue daemon;
  daemon.initialize();
  SECTION("in initialize") {
    CHECK(daemon.throws() == lines{"log error: oops", "request stop", "leave with 10"});
  }
  SECTION("in process_records") {
    daemon.returns();
    daemon.records("100");
    CHECK(daemon.throws() ==
          lines{"log error: oops", "request stop", "arm grace timer 10000 ms", "leave with 10"});
  }
  SECTION("in lease_lost") {
    daemon.returns();
    daemon.lease_lost();
    CHECK(daemon.throws() == lines{"log error: oops", "leave with 10"});
  }
  SECTION("in shard_ended, where no checkpoint may be sent either") {
    daemon.returns();
    daemon.records("100");
    daemon.returns();
    daemon.answer("ThrottlingException");
    daemon.shard_ended();
    CHECK(daemon.throws() == lines{"log error: oops", "request stop",
                                   "log warning: records up to 100/0 are complete but not "
                                   "checkpointed: they will be delivered again",
                                   "leave with 10"});
  }
  SECTION("in shutdown_requested") {
    daemon.returns();
    daemon.shutdown_requested();
    CHECK(daemon.throws() ==
          lines{"log error: oops", "request stop", "arm grace timer 10000 ms", "leave with 10"});
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
  CHECK(daemon.throws() == lines{"log error: oops", "request stop", "arm grace timer 10000 ms",
                                 "write checkpoint 200/0"});
  SECTION("and leaves when that is answered") { CHECK(daemon.answer() == lines{"leave with 10"}); }
  SECTION("or refused") {
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"log warning: the checkpoint at 200/0 failed: ThrottlingException",
                "arm retry timer", "leave with 10"});
  }
  SECTION("or not answered within the grace time") {
    CHECK(daemon.fires(session::timer::grace) == lines{"leave with 10"});
  }
  SECTION("or the daemon is gone") {
    CHECK(daemon.end_of_input() ==
          lines{"log error: the daemon closed the input in the middle of processRecords",
                "leave with 10"});
  }
}

TEST_CASE("a callback that fails since the lease is gone is answered all the same",
          "[session][P65][P67]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  SECTION("after the daemon reported it") {
    daemon.checkpoint(1);
    daemon.answer("ShutdownException");
    CHECK(daemon.throws_lease_gone() ==
          lines{"log warning: lease gone", "end calls", "write status processRecords"});
  }
  SECTION("before the daemon reports it; a checkpoint that was sent is still answered") {
    daemon.async_checkpoint(at("100"), false);
    daemon.callback_lasts();
    CHECK(daemon.throws_lease_gone() == lines{"log warning: lease gone", "request stop",
                                              "end calls", "write status processRecords"});
    CHECK(daemon.answer("ShutdownException") ==
          lines{"log warning: the checkpoint at 100/0 failed: ShutdownException; this worker no "
                "longer holds the lease"});
  }
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
      CHECK(daemon.throws_lease_gone() == lines{"log warning: lease gone", "request stop",
                                                "end calls", "write status processRecords"});
      break;
    case where::during_callback:
      CHECK(daemon.throws_lease_gone_elsewhere() ==
            lines{"log warning: fenced", "request stop", "end calls"});
      CHECK(daemon.returns() == lines{"write status processRecords"});
      break;
    case where::between_actions:
      daemon.returns();
      daemon.answer();
      CHECK(daemon.throws_lease_gone_elsewhere() ==
            lines{"log warning: fenced", "request stop", "end calls"});
      break;
  }
  CHECK(daemon.records("200") == lines{"write status processRecords"});
  CHECK(daemon.no_records() == lines{"write status processRecords"});
  CHECK(daemon.checkpoint(1, at("100"), false) ==
        lines{"notify 1: " + make_error_code(errc::lease_lost).message()});
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
  CHECK(daemon.throws_lease_gone() ==
        lines{"log warning: lease gone", "request stop", "end calls", "write status initialize"});
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
    daemon.now += session::give_up_patience;
    CHECK(daemon.no_records() == lines{"write status processRecords"});
    CHECK(daemon.records("200") ==
          lines{"log error: records still arrive, so this worker has the lease: leaving, for a new "
                "processor to take the shard over; lease gone",
                "leave with 10"});
  }
  SECTION("but not when the daemon itself reported that the lease is lost") {
    daemon.callback_lasts();
    daemon.throws_lease_gone();
    daemon.answer("ShutdownException");
    daemon.now += session::give_up_patience;
    CHECK(daemon.records("200") ==
          lines{"log warning: records up to 200/0 are answered, but not processed: lease gone",
                "write status processRecords"});
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
    CHECK(daemon.shard_ended() ==
          lines{"log error: the end of the shard is not checkpointed, and the daemon has not "
                "reported that the lease is lost: leaving; lease gone",
                "leave with 14"});
  }
  SECTION("given up in shard_ended") {
    daemon.returns();
    daemon.answer();
    daemon.shard_ended();
    CHECK(daemon.throws_lease_gone() ==
          lines{"log warning: lease gone", "request stop", "end calls",
                "log error: the end of the shard is not checkpointed, and the daemon has not "
                "reported that the lease is lost: leaving; lease gone",
                "leave with 14"});
  }
  SECTION("given up while the end of the shard is being checkpointed") {
    daemon.returns();
    daemon.answer();
    daemon.end_shard();
    CHECK(daemon.throws_lease_gone_elsewhere() ==
          lines{"log warning: fenced", "request stop", "end calls"});
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"log warning: the checkpoint at the end of the shard failed: ThrottlingException",
                "log error: the end of the shard is not checkpointed, and the daemon has not "
                "reported that the lease is lost: leaving; fenced",
                "leave with 14"});
  }
  SECTION("given up while it is being checkpointed, which succeeds") {
    daemon.returns();
    daemon.answer();
    daemon.end_shard();
    daemon.throws_lease_gone_elsewhere();
    CHECK(daemon.answer() == lines{"write status shardEnded"});
  }
}

TEST_CASE("the end of input leads out at every step", "[session][P31][P56][P57]") {
  session_dialogue daemon;
  SECTION("before initialize") {
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
  }
  SECTION("while idle") {
    daemon.open();
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
  }
  SECTION("while a callback runs, after it returned") {
    daemon.initialize();
    CHECK(daemon.end_of_input() ==
          lines{"log error: the daemon closed the input in the middle of initialize",
                "request stop", "arm grace timer 10000 ms"});
    CHECK(daemon.returns() == lines{"leave with 12"});
  }
  SECTION("while a checkpoint is awaited in a callback") {
    daemon.start_batch("100");
    daemon.checkpoint(1);
    CHECK(daemon.end_of_input() ==
          lines{"log error: the daemon closed the input in the middle of processRecords",
                "log warning: the daemon did not answer the checkpoint at 100/0",
                "notify 1: " + make_error_code(errc::daemon_gone).message(), "request stop",
                "arm grace timer 10000 ms"});
    CHECK(daemon.returns() == lines{"leave with 12"});
  }
  SECTION("while the answer to a checkpoint that went with the status is due") {
    daemon.process("100");
    CHECK(daemon.end_of_input() ==
          lines{"log warning: the daemon did not answer the checkpoint at 100/0",
                "log warning: records up to 100/0 are complete but not checkpointed: they will be "
                "delivered again",
                "request stop", "leave with 0"});
  }
  SECTION("in the middle of a line") {
    daemon.open();
    CHECK(daemon.end_of_input(true) == lines{"log error: the input ended in the middle of a line",
                                             "request stop", "leave with 12"});
  }
}

TEST_CASE("initialize is called with the shard's id and where reading begins", "[session][P10]") {
  session::session session{run_options()};
  session::outputs told;
  const sequence_position start("100", 7);
  session.on_message({"initialize", protocol::initialize{"shardId-0", start}}, {}, {}, told);
  REQUIRE(told.size() == 1);
  const auto& callback = std::get<session::call>(told[0]);
  CHECK(callback.kind == protocol::action_kind::initialize);
  CHECK(callback.shard_id == "shardId-0");
  CHECK(callback.start_position == start);
}
