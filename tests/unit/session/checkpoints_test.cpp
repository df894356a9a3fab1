// SPDX-License-Identifier: Apache-2.0
// What is checkpointed when, and what becomes of it.
#include "session/checkpoints.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

#include <kclxx/run_options.hpp>

#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using namespace kclxx;
using session::timer;
using namespace kclxx::test;
using lines = session_dialogue::lines;
using namespace std::chrono_literals;

namespace {

std::string message(errc value) { return make_error_code(value).message(); }
std::string message(checkpoint_errc value) { return make_error_code(value).message(); }
std::string message(const char* daemon_name) {
  return make_checkpoint_error_code(daemon_name).message();
}

}  // namespace

TEST_CASE("what process_records returned from is checkpointed with the status", "[session][P39]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.returns() == lines{"write checkpoint 100/0", "write status processRecords"});
  CHECK(daemon.answer() == lines{});
}

TEST_CASE("automatic checkpoints keep the interval", "[session][P52][P62]") {
  session_dialogue daemon;
  daemon.process("100");
  daemon.answer();
  daemon.now += std::chrono::milliseconds(4999);
  daemon.records("200");
  CHECK(daemon.returns() == lines{"write status processRecords"});
  daemon.now += std::chrono::milliseconds(1);
  daemon.records("300");
  CHECK(daemon.returns() == lines{"write checkpoint 300/0", "write status processRecords"});
}

TEST_CASE("in checkpoint_mode::manual nothing is checkpointed that was not asked for",
          "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.returns() == lines{"write status processRecords"});
  daemon.shutdown_requested();
  CHECK(daemon.returns() == lines{"write status shutdownRequested"});
}

TEST_CASE("a sub-sequence number goes with its position", "[session][P21][P17]") {
  session_dialogue daemon;
  daemon.open();
  daemon.records("100", 7);
  CHECK(daemon.returns() == lines{"write checkpoint 100/7", "write status processRecords"});
}

TEST_CASE("what async_checkpoint asks for is sent once, with the status of the callback",
          "[session][P62][P39]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.async_checkpoint(at("90")) == lines{});
  CHECK(daemon.async_checkpoint(at("95")) == lines{});
  CHECK(daemon.async_checkpoint(at("80")) == lines{});
  CHECK(daemon.returns() == lines{"write checkpoint 95/0", "write status processRecords"});
  CHECK(daemon.answer() == lines{});
}

TEST_CASE("what async_checkpoint asks for is sent before the callback returns when it lasts",
          "[session]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.async_checkpoint(at("90")) == lines{});
  CHECK(daemon.callback_lasts() == lines{"write checkpoint 90/0"});
  SECTION("a second one waits for the answer") {
    CHECK(daemon.async_checkpoint(at("95")) == lines{});
    CHECK(daemon.answer() == lines{"write checkpoint 95/0"});
    CHECK(daemon.returns() == lines{"write status processRecords"});
  }
  SECTION("and the status waits for both") {
    CHECK(daemon.async_checkpoint(at("95"), false) == lines{});
    CHECK(daemon.async_checkpoint(at("93"), false) == lines{});
    CHECK(daemon.returns() == lines{});
    CHECK(daemon.answer() == lines{"write checkpoint 95/0", "write status processRecords"});
  }
  SECTION("a lower one changes nothing") {
    CHECK(daemon.async_checkpoint(at("80")) == lines{});
    CHECK(daemon.returns() == lines{"write status processRecords"});
    CHECK(daemon.answer() == lines{});
  }
  SECTION("and one that comes later is sent at once") {
    daemon.answer();
    CHECK(daemon.async_checkpoint(at("95")) == lines{"write checkpoint 95/0"});
  }
}

TEST_CASE("async_checkpoint keeps the interval", "[session][P62]") {
  session_dialogue daemon(manual(std::chrono::seconds(5)));
  daemon.start_batch("100");
  daemon.async_checkpoint(at("10"));
  CHECK(daemon.callback_lasts() == lines{"write checkpoint 10/0"});
  daemon.answer();
  SECTION("in a callback that lasts: the next is sent when the interval has passed") {
    daemon.now += std::chrono::milliseconds(1000);
    CHECK(daemon.async_checkpoint(at("20")) == lines{"arm pace timer 4000 ms"});
    CHECK(daemon.async_checkpoint(at("30")) == lines{});
    CHECK(daemon.fires(timer::pace) == lines{"write checkpoint 30/0"});
  }
  SECTION("with the status of a callback") {
    daemon.async_checkpoint(at("20"));
    CHECK(daemon.returns() == lines{"write status processRecords"});
    daemon.now += std::chrono::milliseconds(5000);
    daemon.no_records();
    CHECK(daemon.returns() == lines{"write checkpoint 20/0", "write status processRecords"});
  }
  SECTION("and is covered by the line of a call that waits") {
    daemon.async_checkpoint(1, at("30"));
    CHECK(daemon.checkpoint(2, at("20")) == lines{"write checkpoint 30/0"});
    CHECK(daemon.answer() == lines{"notify 1: persisted", "notify 2: persisted"});
  }
  SECTION("which a call that waits does not") {
    CHECK(daemon.checkpoint(1, at("20")) == lines{"write checkpoint 20/0"});
  }
  SECTION("but a shutdown request does not wait for it") {
    daemon.async_checkpoint(at("20"));
    daemon.returns();
    daemon.shutdown_requested();
    CHECK(daemon.returns() == lines{"write checkpoint 20/0"});
  }
  SECTION("nor does the end of the shard") {
    daemon.async_checkpoint(at("100"));
    daemon.returns();
    daemon.shard_ended();
    CHECK(daemon.returns() == lines{"write checkpoint SHARD_END/0"});
  }
  SECTION("nor does a callback that fails") {
    daemon.async_checkpoint(at("20"));
    CHECK(daemon.throws() == lines{"log error: oops", "request stop", "arm grace timer 10000 ms",
                                   "write checkpoint 20/0"});
  }
}

TEST_CASE("between actions an async_checkpoint waits for the next that allows it",
          "[session][P25]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  CHECK(daemon.async_checkpoint(at("100"), false) == lines{});
  CHECK(daemon.no_records() == lines{"call process_records with 0"});
  CHECK(daemon.returns() == lines{"write checkpoint 100/0", "write status processRecords"});
}

TEST_CASE("a checkpoint after what was delivered, or at a sentinel, is refused and not sent",
          "[session][P36]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  const auto [position, why] = GENERATE(table<sequence_position, errc>({
      {at("101"), errc::position_out_of_range},
      {at("100", 1), errc::position_out_of_range},
      {at("99", UINT64_MAX), errc::position_out_of_range},  // beyond 63 bits
      {at("LATEST"), errc::invalid_position},
      {at("SHARD_END"), errc::invalid_position},
  }));
  SECTION("with the error for its handler") {
    CHECK(daemon.async_checkpoint(1, position) == lines{"notify 1: " + message(why)});
  }
  SECTION("with a log line when it has no handler") {
    CHECK(daemon.async_checkpoint(position) ==
          lines{"log error: the checkpoint at " + to_string(position) +
                " is refused: " + message(why)});
  }
  SECTION("with the error for a call that waits") {
    CHECK(daemon.checkpoint(1, position) == lines{"notify 1: " + message(why)});
  }
  CHECK(daemon.returns() == lines{"write status processRecords"});
}

TEST_CASE("a batch that comes again is called with, and no checkpoint goes back",
          "[session][P69]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.async_checkpoint(at("100"));
  daemon.returns();
  daemon.answer();
  CHECK(daemon.records("50") == lines{"call process_records with 0"});
  CHECK(daemon.async_checkpoint(1, at("50")) == lines{"notify 1: persisted"});
  CHECK(daemon.async_checkpoint() == lines{});
  CHECK(daemon.returns() == lines{"write status processRecords"});
  daemon.records("200");
  daemon.async_checkpoint();
  CHECK(daemon.returns() == lines{"write checkpoint 200/0", "write status processRecords"});
}

TEST_CASE("a handler gets the outcome of its own position, in the order of the positions",
          "[session][P40][P43]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.async_checkpoint(1, at("50"));
  daemon.async_checkpoint(2, at("40"));
  daemon.callback_lasts();
  daemon.async_checkpoint(3, at("60"));
  SECTION("when it, or a later one, is persisted") {
    CHECK(daemon.answer() ==
          lines{"notify 2: persisted", "notify 1: persisted", "write checkpoint 60/0"});
    CHECK(daemon.answer() == lines{"notify 3: persisted"});
    CHECK(daemon.async_checkpoint(4, at("55")) == lines{"notify 4: persisted"});
  }
  SECTION("not when it failed with a retryable error, however often") {
    for (int attempt = 1; attempt < 30; ++attempt) {
      CHECK(daemon.answer("ThrottlingException") == retrying(attempt == 1 ? "50/0" : "60/0"));
      CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 60/0"});
    }
    CHECK(daemon.answer() ==
          lines{"notify 2: persisted", "notify 1: persisted", "notify 3: persisted"});
  }
  SECTION("when it failed for good; a later request for the same position is sent again") {
    const std::string failed = message(checkpoint_errc::invalid_state);
    CHECK(daemon.answer("InvalidStateException") ==
          lines{"log error: the checkpoint at 50/0 failed: InvalidStateException",
                "notify 2: " + failed, "notify 1: " + failed, "write checkpoint 60/0"});
    CHECK(daemon.answer("InvalidStateException") ==
          lines{"log error: the checkpoint at 60/0 failed: InvalidStateException",
                "notify 3: " + failed});
    CHECK(daemon.async_checkpoint(4, at("60")) == lines{"write checkpoint 60/0"});
    CHECK(daemon.answer() == lines{"notify 4: persisted"});
  }
  SECTION("when the lease is gone") {
    const std::string gone = message(checkpoint_errc::shutdown);
    CHECK(daemon.answer("ShutdownException") ==
          lines{"log warning: the checkpoint at 50/0 failed: ShutdownException; this worker no "
                "longer holds the lease",
                "notify 2: " + gone, "notify 1: " + gone, "notify 3: " + gone, "request stop"});
    CHECK(daemon.async_checkpoint(4, at("60")) == lines{"notify 4: " + message(errc::lease_lost)});
  }
  SECTION("when the daemon is gone") {
    daemon.returns();
    daemon.answer();
    CHECK(daemon.end_of_input() ==
          lines{"log warning: the daemon did not answer the checkpoint at 60/0",
                "log warning: records up to 60/0 are complete but not checkpointed: they will be "
                "delivered again",
                "notify 3: " + message(errc::daemon_gone), "request stop", "leave with 0"});
    CHECK(daemon.async_checkpoint(4, at("60")) == lines{"notify 4: " + message(errc::daemon_gone)});
  }
}

TEST_CASE(
    "a checkpoint without a position covers in a callback what was delivered, elsewhere what "
    "callbacks returned from",
    "[session][P37][P63]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  daemon.records("200");
  SECTION("async, in the callback") {
    daemon.async_checkpoint();
    CHECK(daemon.returns() == lines{"write checkpoint 200/0", "write status processRecords"});
  }
  SECTION("waiting, in the callback") {
    CHECK(daemon.checkpoint(1) == lines{"write checkpoint 200/0"});
  }
  SECTION("async, elsewhere") {
    daemon.async_checkpoint(std::nullopt, false);
    CHECK(daemon.throws() == lines{"log error: oops", "request stop", "arm grace timer 10000 ms",
                                   "write checkpoint 100/0"});
  }
  SECTION("waiting, elsewhere") {
    CHECK(daemon.checkpoint(1, std::nullopt, false) == lines{"write checkpoint 100/0"});
  }
  SECTION("elsewhere before any callback has returned: nothing, which is persisted") {
    session_dialogue other(manual());
    other.start_batch("100");
    CHECK(other.async_checkpoint(1, std::nullopt, false) == lines{"notify 1: persisted"});
    CHECK(other.checkpoint(2, std::nullopt, false) == lines{"notify 2: persisted"});
    CHECK(other.async_checkpoint(std::nullopt, false) == lines{});
  }
}

TEST_CASE("a checkpoint at TRIM_HORIZON, the position of an empty batch, is persisted already",
          "[session][P36]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1, at("TRIM_HORIZON")) == lines{"notify 1: persisted"});
  CHECK(daemon.async_checkpoint(2, at("TRIM_HORIZON")) == lines{"notify 2: persisted"});
  CHECK(daemon.returns() == lines{"write status processRecords"});
}

TEST_CASE("an async_checkpoint that failed retryably is sent again, merged with a higher one",
          "[session][P41][P45]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.async_checkpoint(at("50"));
  daemon.callback_lasts();
  const auto* error = GENERATE("ThrottlingException", "KinesisClientLibDependencyException");
  CHECK(daemon.answer(error) ==
        lines{std::string("log warning: the checkpoint at 50/0 failed: ") + error + "; retrying",
              "arm retry timer"});
  CHECK(daemon.async_checkpoint(at("60")) == lines{});  // not before the backoff is over
  SECTION("when the backoff is over") {
    CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 60/0"});
  }
  SECTION("without delaying the status") {
    CHECK(daemon.returns() == lines{"write status processRecords"});
    CHECK(daemon.fires(timer::retry) == lines{});
    CHECK(daemon.no_records() == lines{"call process_records with 0"});
    CHECK(daemon.returns() == lines{"write checkpoint 60/0", "write status processRecords"});
  }
}

TEST_CASE("an answer to another position than the one that was sent is a protocol error",
          "[session][P54][P61]") {
  SECTION("from a daemon") {
    session_dialogue daemon(manual());
    daemon.start_batch("100");
    daemon.checkpoint(1, at("100"));
    const auto wrong = GENERATE(std::optional(at("99")), std::optional<sequence_position>());
    CHECK(daemon.answer_for(wrong) ==
          lines{"log error: the daemon answered a checkpoint " +
                    (wrong ? "at " + to_string(*wrong) : "without a position") +
                    ", which is not the one that was sent",
                "log warning: the daemon did not answer the checkpoint at 100/0",
                "notify 1: " + message(errc::daemon_gone), "request stop",
                "arm grace timer 10000 ms"});
    CHECK(daemon.returns() == lines{"leave with 11"});
  }
  SECTION("and a number is no answer to the end of the shard") {
    session_dialogue daemon;
    daemon.open();
    daemon.end_shard();
    CHECK(daemon.answer_for(at("100")) == lines{"log error: the daemon answered a checkpoint at "
                                                "100/0, which is not the one that was sent",
                                                "request stop", "leave with 11"});
  }
}

TEST_CASE("a waiting checkpoint gets the daemon's word", "[session][P43]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.checkpoint(1, at("100")) == lines{"write checkpoint 100/0"});
  SECTION("persisted") {
    CHECK(daemon.answer() == lines{"notify 1: persisted"});
    CHECK(daemon.checkpoint(2, at("99")) == lines{"notify 2: persisted"});
    CHECK(daemon.checkpoint(3) == lines{"notify 3: persisted"});
  }
  SECTION("refused") {
    CHECK(daemon.answer("IllegalArgumentException") ==
          lines{"log error: the checkpoint at 100/0 failed: IllegalArgumentException",
                "notify 1: " + message(checkpoint_errc::illegal_argument)});
  }
  SECTION("with a name that nobody knows") {
    CHECK(daemon.answer("SomeNewException") ==
          lines{"log error: the checkpoint at 100/0 failed: SomeNewException",
                "notify 1: " + message("SomeNewException")});
  }
  SECTION("retried as often as the options allow") {
    for (int attempt = 1; attempt < 10; ++attempt) {
      CHECK(daemon.answer("ThrottlingException") == retrying("100/0"));
      CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 100/0"});
    }
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"notify 1: " + message(checkpoint_errc::throttled),
                "log warning: the checkpoint at 100/0 failed: ThrottlingException"});
  }
}

TEST_CASE("calls that wait at the same time share one message", "[session]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.checkpoint(1, at("10"));
  CHECK(daemon.checkpoint(2, at("20"), false) == lines{});
  CHECK(daemon.checkpoint(3, at("30"), false) == lines{});
  CHECK(daemon.answer() == lines{"notify 1: persisted", "write checkpoint 30/0"});
  CHECK(daemon.answer() == lines{"notify 2: persisted", "notify 3: persisted"});
}

TEST_CASE("waiting inside initialize fails at once, from another thread it waits",
          "[session][P38]") {
  session_dialogue daemon;
  daemon.initialize(at("100"));
  CHECK(daemon.checkpoint(1) == lines{"notify 1: " + message(errc::not_allowed_here)});
  CHECK(daemon.checkpoint(2, at("100"), false) == lines{"notify 2: persisted"});
}

TEST_CASE("a waiting checkpoint without an open action is sent with the next", "[session][P25]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  CHECK(daemon.checkpoint(1, at("100"), false) == lines{});
  SECTION("that allows it") {
    CHECK(daemon.no_records() == lines{"call process_records with 0", "write checkpoint 100/0"});
    CHECK(daemon.answer() == lines{"notify 1: persisted"});
  }
  SECTION("and stays pending when its deadline passes first") {
    CHECK(daemon.deadline_passes(1) == lines{});
    CHECK(daemon.was_waiting);
    CHECK(daemon.no_records() == lines{"call process_records with 0"});
    CHECK(daemon.returns() == lines{"write checkpoint 100/0", "write status processRecords"});
  }
  SECTION("and fails before the callback when the lease is lost") {
    CHECK(daemon.lease_lost() == lines{"notify 1: " + message(errc::lease_lost), "request stop",
                                       "end calls", "call lease_lost"});
  }
  SECTION("and fails at the end of the input") {
    CHECK(daemon.end_of_input() == lines{"log warning: records up to 100/0 are complete but not "
                                         "checkpointed: they will be delivered again",
                                         "notify 1: " + message(errc::daemon_gone), "request stop",
                                         "leave with 0"});
  }
}

TEST_CASE("after a ShutdownException every later checkpoint fails at once", "[session][P42]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  daemon.checkpoint(1);
  CHECK(daemon.answer("ShutdownException") ==
        lines{"log warning: the checkpoint at 100/0 failed: ShutdownException; this worker no "
              "longer holds the lease",
              "notify 1: " + message(checkpoint_errc::shutdown), "request stop"});
  CHECK(daemon.checkpoint(2) == lines{"notify 2: " + message(errc::lease_lost)});
  CHECK(daemon.async_checkpoint(3, std::nullopt) ==
        lines{"notify 3: " + message(errc::lease_lost)});
  CHECK(daemon.async_checkpoint() == lines{});  // a log line has reported that the lease is gone
  CHECK(daemon.returns() == lines{"write status processRecords"});
  CHECK(daemon.no_records() == lines{"call process_records with 0"});
  daemon.returns();
  for (int minute = 0; minute < 3; ++minute) {
    CHECK(
        daemon.records("200") ==
        lines{"log warning: records up to 200/0 arrive, and this worker no longer holds the lease: "
              "none of them is checkpointed, and each, batches and parallel do not process them",
              "call process_records with 0"});
    daemon.returns();
    CHECK(daemon.records("200") == lines{"call process_records with 0"});
    daemon.returns();
    daemon.now += std::chrono::minutes(1);
  }
  daemon.lease_lost();
  CHECK(daemon.checkpoint(4) == lines{"notify 4: " + message(errc::lease_lost)});
}

TEST_CASE("an action instead of an answer fails what waited for it", "[session][P55]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.checkpoint(1, at("100"), false);
  daemon.async_checkpoint(2, at("90"));
  CHECK(daemon.returns() == lines{"write status processRecords"});
  CHECK(daemon.no_records() ==
        lines{"log warning: the daemon did not answer the checkpoint at 100/0",
              "notify 1: " + message(errc::not_answered), "call process_records with 0"});
  CHECK(daemon.returns() == lines{"write checkpoint 90/0", "write status processRecords"});
}

TEST_CASE("without its answer a checkpoint has failed", "[session][P55]") {
  session_dialogue file(manual());
  file.start_batch("100");
  SECTION("of a call, and the next one is sent") {
    file.checkpoint(1, at("40"));
    file.checkpoint(2, at("60"), false);
    CHECK(file.no_answer() == lines{"log warning: the daemon did not answer the checkpoint at 40/0",
                                    "notify 1: the daemon sent its next message without "
                                    "answering the checkpoint: try again",
                                    "write checkpoint 60/0"});
    CHECK(file.no_answer() == lines{"log warning: the daemon did not answer the checkpoint at 60/0",
                                    "notify 2: the daemon sent its next message without "
                                    "answering the checkpoint: try again"});
    CHECK(file.returns() == lines{"write status processRecords"});
  }
  SECTION("of a handler, and it is not tried again") {
    file.async_checkpoint(1, at("60"));
    file.async_checkpoint(2, at("40"));
    file.async_checkpoint(at("70"));
    CHECK(file.callback_lasts() == lines{"write checkpoint 70/0"});
    CHECK(file.no_answer() == lines{"log warning: the daemon did not answer the checkpoint at 70/0",
                                    "notify 2: " + message(errc::not_answered),
                                    "notify 1: " + message(errc::not_answered)});
    CHECK(file.returns() == lines{"write status processRecords"});
  }
  SECTION("of the end of the shard") {
    file.async_checkpoint(at("100"));
    file.returns();
    file.answer();
    file.end_shard();
    CHECK(
        file.no_answer() ==
        lines{
            "log warning: the daemon did not answer the checkpoint at the end of the shard",
            "log error: the end of the shard could not be checkpointed after 1 attempt(s): leaving",
            "request stop", "leave with 14"});
  }
}

// What ends the process when kclxx itself is wrong, before anything wrong is persisted.
namespace {

struct sender : session::checkpoints {
  explicit sender(const run_options& options = {}, std::uint32_t seed = 1)
      : checkpoints(options, seed) {}
  void send(const sequence_position& position) { sent(position, {}); }
  /// A checkpoint of this number fails. Returns the backoff.
  std::chrono::nanoseconds fail(const std::string& number) {
    deliver(sequence_position(number));
    complete_delivered();
    make_complete_pending();
    send(sequence_position(number));
    session::outputs out;
    answered("ThrottlingException", {}, std::nullopt, out);
    return not_before().time_since_epoch();
  }
  void answer(const std::string& number, const std::optional<std::string>& error) {
    deliver(sequence_position(number));
    send(sequence_position(number));
    session::outputs out;
    answered(error, {}, std::nullopt, out);
  }
};

}  // namespace

TEST_CASE("a backoff of 0 counts as 1 ms, so that nothing is sent again without a pause",
          "[session][P41]") {
  const auto retry =
      GENERATE(retry_options{0ms, 0ms}, retry_options{0ms, 5000ms}, retry_options{100ms, 0ms});
  sender to_daemon({.retry = retry});
  for (int failures = 0; failures < 100; ++failures) CHECK(to_daemon.fail("100") >= 1ms);
}

TEST_CASE("a backoff is at least half of what it may be, and begins anew after another answer",
          "[session][P41]") {
  const auto error =
      GENERATE(std::optional<std::string>(), std::optional<std::string>("InvalidStateException"));
  const run_options options{.retry = {1000ms, 8000ms}};
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO(seed);
    sender to_daemon(options, seed);
    const auto is_between = [](std::chrono::nanoseconds backoff, int least, int most) {
      return backoff >= std::chrono::milliseconds(least) &&
             backoff <= std::chrono::milliseconds(most);
    };
    CHECK(is_between(to_daemon.fail("100"), 500, 1000));
    CHECK(is_between(to_daemon.fail("100"), 1000, 2000));
    CHECK(is_between(to_daemon.fail("100"), 2000, 4000));
    to_daemon.answer("100", error);
    CHECK(is_between(to_daemon.fail("200"), 500, 1000));
  }
}

TEST_CASE("an attempt counts for the calls that it was made for", "[session][P41]") {
  session_dialogue daemon(manual(0ms, {.max_attempts = 2}));
  daemon.process("100");
  daemon.records("200");
  CHECK(daemon.checkpoint(1, at("100")) == lines{"write checkpoint 100/0"});
  CHECK(daemon.checkpoint(2, at("200"), false) == lines{});
  CHECK(daemon.answer("ThrottlingException") == retrying("100/0"));
  CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 200/0"});
  CHECK(daemon.answer("ThrottlingException") ==
        lines{"notify 1: " + message("ThrottlingException"),
              "log warning: the checkpoint at 200/0 failed: ThrottlingException; retrying",
              "arm retry timer"});
  CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 200/0"});
}

TEST_CASE("a checkpoint that must not be sent is an error of this library", "[session][P39]") {
  const sequence_position first("100");
  const sequence_position end("SHARD_END");
  sender to_daemon;
  SECTION("no position was delivered, or not so far") {
    CHECK_THROWS_AS(to_daemon.send(first), std::logic_error);
    to_daemon.deliver(first);
    CHECK_THROWS_AS(to_daemon.send(sequence_position("100", 1)), std::logic_error);
    CHECK_NOTHROW(to_daemon.send(first));
  }
  SECTION("the last one is not answered") {
    to_daemon.deliver(sequence_position("200"));
    to_daemon.send(first);
    CHECK_THROWS_AS(to_daemon.send(sequence_position("200")), std::logic_error);
  }
  SECTION("the daemon has not reported the end of the shard") {
    CHECK_THROWS_AS(to_daemon.send(end), std::logic_error);
    to_daemon.reach_end();
    CHECK_NOTHROW(to_daemon.send(end));
  }
  SECTION("the lease is lost") {
    to_daemon.deliver(first);
    session::outputs out;
    to_daemon.lose_lease(errc::lease_lost, out);
    CHECK_THROWS_AS(to_daemon.send(first), std::logic_error);
  }
}
