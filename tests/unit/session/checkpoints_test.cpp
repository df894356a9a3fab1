// SPDX-License-Identifier: Apache-2.0
// What is checkpointed when, and what becomes of it.
#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using kclxx::errc;
using kclxx::sequence_position;
using kclxx::test::at;
using kclxx::test::by_request;
using kclxx::test::mentions;
using kclxx::test::session_dialogue;
using lines = session_dialogue::lines;

namespace {

std::string message(errc value) { return make_error_code(value).message(); }
std::string message(kclxx::checkpoint_errc value) { return make_error_code(value).message(); }
std::string message(const char* daemon_name) {
  return kclxx::make_checkpoint_error_code(daemon_name).message();
}

}  // namespace

TEST_CASE("what process_records returned from is checkpointed with the status", "[session][P39]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.returns() == lines{"write checkpoint 100/0", "write status processRecords"});
  CHECK(daemon.answer() == lines{});
}

TEST_CASE("automatic checkpoints keep the interval", "[session][P52]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.returns();
  daemon.answer();
  daemon.now += std::chrono::milliseconds(4999);
  daemon.records("200");
  CHECK(daemon.returns() == lines{"write status processRecords"});
  daemon.now += std::chrono::milliseconds(1);
  daemon.records("300");
  CHECK(daemon.returns() == lines{"write checkpoint 300/0", "write status processRecords"});
}

TEST_CASE("by_request, nothing is checkpointed that was not asked for", "[session]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  CHECK(daemon.returns() == lines{"write status processRecords"});
  daemon.shutdown_requested();
  CHECK(daemon.returns() == lines{"write status shutdownRequested"});
}

TEST_CASE("a sub-sequence number goes with its position", "[session][P21][P17]") {
  session_dialogue daemon;
  daemon.initialize();
  daemon.returns();
  daemon.records("100", 7);
  CHECK(daemon.returns() == lines{"write checkpoint 100/7", "write status processRecords"});
}

TEST_CASE("requests for later are sent as one, with the status of a callback that returns",
          "[session]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  CHECK_FALSE(daemon.request_for_later(at("90")));
  CHECK_FALSE(daemon.request_for_later(at("95")));
  CHECK(daemon.request_for_later(at("101")) == errc::position_out_of_range);
  CHECK(daemon.returns() == lines{"write checkpoint 95/0", "write status processRecords"});
  CHECK(daemon.answer() == lines{});
}

TEST_CASE("requests for later are sent at once when the callback lasts", "[session]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  CHECK(daemon.callback_lasts() == lines{});
  CHECK_FALSE(daemon.request_for_later(at("90")));
  CHECK(daemon.callback_lasts() == lines{"write checkpoint 90/0"});
  CHECK_FALSE(daemon.request_for_later(at("95")));
  CHECK(daemon.callback_lasts() == lines{});  // one is unanswered
  CHECK(daemon.answer() == lines{"write checkpoint 95/0"});
  CHECK(daemon.returns() == lines{"write status processRecords"});
}

TEST_CASE("a request for later is refused when it is too late", "[session]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  daemon.lease_lost();
  CHECK(daemon.request_for_later(at("90")) == errc::lease_lost);
}

TEST_CASE("a request is sent at once while an action is open", "[session]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  CHECK(daemon.request(at("90")) == lines{"write checkpoint 90/0"});
  SECTION("a second one waits for the answer, and the status waits for both") {
    CHECK(daemon.request(at("95")) == lines{});
    CHECK(daemon.request(at("93")) == lines{});
    CHECK(daemon.returns() == lines{});
    CHECK(daemon.answer() == lines{"write checkpoint 95/0", "write status processRecords"});
  }
  SECTION("a lower one changes nothing") {
    CHECK(daemon.request(at("80")) == lines{});
    CHECK(daemon.returns() == lines{"write status processRecords"});
    CHECK(daemon.answer() == lines{});
  }
}

TEST_CASE("between actions a request waits for the next that allows it", "[session][P25]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  daemon.returns();
  CHECK(daemon.request(at("100")) == lines{});
  CHECK(daemon.no_records() == lines{"call process_records with 0", "write checkpoint 100/0"});
}

TEST_CASE("a request beyond what was delivered, or at a sentinel, is refused here",
          "[session][P36]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  CHECK(daemon.request(at("101")) == lines{});
  CHECK(daemon.refusal == errc::position_out_of_range);
  CHECK(daemon.request(at("100", 1)) == lines{});
  CHECK(daemon.refusal == errc::position_out_of_range);
  CHECK(daemon.request(at("99", UINT64_MAX)) == lines{});  // not a Java long
  CHECK(daemon.refusal == errc::position_out_of_range);
  CHECK(daemon.request(at("LATEST")) == lines{});
  CHECK(daemon.refusal == errc::invalid_position);
}

TEST_CASE("a request that failed retryably is tried again, merged with a higher one",
          "[session][P41][P45]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  daemon.request(at("50"));
  const auto* error = GENERATE("ThrottlingException", "KinesisClientLibDependencyException");
  CHECK(daemon.answer(error) == lines{});
  CHECK(mentions(daemon.armed, "arm retry timer"));
  CHECK(mentions(daemon.log, error));
  CHECK(daemon.request(at("60")) == lines{});  // not before the backoff is over
  SECTION("when its time has come") {
    CHECK(daemon.retry_timer_fires() == lines{"write checkpoint 60/0"});
  }
  SECTION("without holding up the status") {
    CHECK(daemon.returns() == lines{"write status processRecords"});
    CHECK(daemon.retry_timer_fires() == lines{});
    CHECK(daemon.no_records() == lines{"call process_records with 0", "write checkpoint 60/0"});
  }
}

TEST_CASE("a request that was refused for good is logged and not repeated", "[session][P43]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  daemon.request(at("50"));
  CHECK(daemon.answer("InvalidStateException") == lines{});
  CHECK(mentions(daemon.log, "InvalidStateException"));
  CHECK(daemon.returns() == lines{"write status processRecords"});
}

TEST_CASE("a waiting checkpoint gets the daemon's word", "[session][P43]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1, at("100")) == lines{"write checkpoint 100/0"});
  SECTION("persisted") {
    CHECK(daemon.answer() == lines{"complete 1: persisted"});
    CHECK(daemon.checkpoint(2, at("99")) == lines{"complete 2: persisted"});
    CHECK(daemon.checkpoint(3) == lines{"complete 3: persisted"});
  }
  SECTION("refused") {
    CHECK(daemon.answer("IllegalArgumentException") ==
          lines{"complete 1: " + message(kclxx::checkpoint_errc::illegal_argument) +
                " (IllegalArgumentException)"});
  }
  SECTION("with a name that nobody knows") {
    CHECK(daemon.answer("SomeNewException") ==
          lines{"complete 1: " + message("SomeNewException") + " (SomeNewException)"});
  }
  SECTION("retried as often as the options say") {
    for (int attempt = 1; attempt < 10; ++attempt) {
      CHECK(daemon.answer("ThrottlingException") == lines{});
      CHECK(daemon.retry_timer_fires() == lines{"write checkpoint 100/0"});
    }
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"complete 1: " + message(kclxx::checkpoint_errc::throttled) +
                " (ThrottlingException)"});
  }
}

TEST_CASE("calls that wait at the same time share one message", "[session]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.checkpoint(1, at("10"));
  CHECK(daemon.checkpoint(2, at("20"), false) == lines{});
  CHECK(daemon.checkpoint(3, at("30"), false) == lines{});
  CHECK(daemon.answer() == lines{"complete 1: persisted", "write checkpoint 30/0"});
  CHECK(daemon.answer() == lines{"complete 2: persisted", "complete 3: persisted"});
}

TEST_CASE("waiting inside initialize fails at once, from another thread it waits",
          "[session][P38]") {
  session_dialogue daemon;
  daemon.initialize(at("100"));
  CHECK(daemon.checkpoint(1) == lines{"complete 1: " + message(errc::not_allowed_here)});
  CHECK(daemon.checkpoint(2, at("100"), false) == lines{"complete 2: persisted"});
}

TEST_CASE("a waiting checkpoint without an open action is sent with the next", "[session][P25]") {
  session_dialogue daemon(by_request());
  daemon.start_batch("100");
  daemon.returns();
  CHECK(daemon.checkpoint(1, at("100"), false) == lines{});
  SECTION("that allows it") {
    CHECK(daemon.no_records() == lines{"call process_records with 0", "write checkpoint 100/0"});
    CHECK(daemon.answer() == lines{"complete 1: persisted"});
  }
  SECTION("and stays pending when its deadline passes first") {
    CHECK(daemon.deadline_passes(1) == lines{});
    CHECK(daemon.was_waiting);
    CHECK(daemon.no_records() == lines{"call process_records with 0", "write checkpoint 100/0"});
  }
  SECTION("and fails before the callback when the lease is lost") {
    CHECK(daemon.lease_lost() ==
          lines{"complete 1: " + message(errc::lease_lost), "request stop", "call lease_lost"});
  }
  SECTION("and fails at the end of the input") {
    CHECK(daemon.end_of_input() ==
          lines{"complete 1: " + message(errc::daemon_gone), "request stop", "leave with 0"});
    CHECK(mentions(daemon.log, "100/0 are complete but not checkpointed"));
  }
}

TEST_CASE("after a ShutdownException every later checkpoint fails at once", "[session][P42]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.checkpoint(1);
  CHECK(daemon.answer("ShutdownException") ==
        lines{"complete 1: " + message(kclxx::checkpoint_errc::shutdown) + " (ShutdownException)",
              "request stop"});
  CHECK(daemon.checkpoint(2) == lines{"complete 2: " + message(errc::lease_lost)});
  daemon.request();
  CHECK(daemon.refusal == errc::lease_lost);
  CHECK(daemon.returns() == lines{"write status processRecords"});
}

TEST_CASE("an action instead of an answer fails what waited for it", "[session][P55]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.checkpoint(1);
  CHECK(daemon.no_records() ==
        lines{"pause reading", "complete 1: " + message(errc::not_answered)});
  CHECK(mentions(daemon.log, "did not answer"));
}
