// SPDX-License-Identifier: Apache-2.0
// The last checkpoints, at the end of a shard and before a shutdown; and what follows when the
// session leaves.
#include "support/catch.hpp"
#include "support/session_dialogue.hpp"

using kclxx::session::timer;
using namespace kclxx::test;
using lines = session_dialogue::lines;

namespace {

/// What follows shardEnded when checkpoints were requested only so far.
lines waiting_for_rest(const std::string& requested) {
  return {
      "log warning: the end of the shard waits: records up to 100/0 were delivered, but "
      "checkpoints were requested " +
          requested + "; call async_checkpoint when the rest is done",
      "arm report timer 60000 ms"};
}

}  // namespace

TEST_CASE("at shard end the null checkpoint is sent after the callback, and waited for",
          "[session][P49][P47][P50][P51]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  daemon.async_checkpoint(at("100"));
  CHECK(daemon.shard_ended() == lines{"call shard_ended"});  // nothing pending goes before
  CHECK(daemon.returns() == lines{"write checkpoint SHARD_END/0"});
  SECTION("then comes the status") {
    CHECK(daemon.answer() == lines{"write status shardEnded"});
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
  }
  SECTION("it is retried") {
    CHECK(daemon.answer("ThrottlingException") == retrying("the end of the shard"));
    CHECK(daemon.fires(timer::retry) == lines{"write checkpoint SHARD_END/0"});
    CHECK(daemon.answer() == lines{"write status shardEnded"});
  }
  SECTION("no status follows when the retries are used up") {
    for (int attempt = 1; attempt < 10; ++attempt) {
      daemon.answer("ThrottlingException");
      daemon.fires(timer::retry);
    }
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"log warning: the checkpoint at the end of the shard failed: ThrottlingException",
                "arm retry timer",
                "log error: the end of the shard could not be checkpointed after 10 attempt(s): "
                "leaving",
                "request stop", "leave with 14"});
  }
  SECTION("no status follows when it was refused for good") {
    CHECK(
        daemon.answer("InvalidStateException") ==
        lines{
            "log error: the checkpoint at the end of the shard failed: InvalidStateException",
            "log error: the end of the shard could not be checkpointed after 1 attempt(s): leaving",
            "request stop", "leave with 14"});
  }
  SECTION("a status follows a ShutdownException: another worker owns the lease") {
    CHECK(daemon.answer("ShutdownException") ==
          lines{"log warning: the checkpoint at the end of the shard failed: ShutdownException; "
                "this worker no longer holds the lease",
                "request stop", "write status shardEnded"});
  }
}

TEST_CASE("the end of the shard waits until all that was delivered is complete", "[session][P64]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  daemon.async_checkpoint(at("40"));
  daemon.returns();
  daemon.answer();
  daemon.shard_ended();
  CHECK(daemon.returns() == waiting_for_rest("only up to 40/0"));
  SECTION("which is logged at once, and then every minute") {
    for (int minute = 1; minute < 4; ++minute) {
      CHECK(daemon.fires(timer::report) == waiting_for_rest("only up to 40/0"));
    }
  }
  SECTION("and continues when async_checkpoint asks for the rest") {
    CHECK(daemon.async_checkpoint(1, at("100"), false) == lines{"write checkpoint SHARD_END/0"});
    CHECK(daemon.answer() == lines{"notify 1: persisted", "write status shardEnded"});
    CHECK(daemon.fires(timer::report) == lines{});
  }
  SECTION("while a part of the rest is checkpointed") {
    CHECK(daemon.async_checkpoint(1, at("60"), false) == lines{"write checkpoint 60/0"});
    CHECK(daemon.async_checkpoint(at("100"), false) == lines{});
    CHECK(daemon.fires(timer::report) == lines{});
    CHECK(daemon.answer() == lines{"notify 1: persisted", "write checkpoint SHARD_END/0"});
  }
  SECTION("and the errors of that part do not count as errors of the end") {
    daemon.async_checkpoint(1, at("60"), false);
    for (int attempt = 1; attempt < 30; ++attempt) {
      CHECK(daemon.answer("ThrottlingException") == retrying("60/0"));
      CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 60/0"});
    }
    CHECK(daemon.answer("InvalidStateException") ==
          lines{"log error: the checkpoint at 60/0 failed: InvalidStateException",
                "notify 1: InvalidStateException: the lease table is broken, or no checkpoint is "
                "permitted now; see the daemon's log"});
    CHECK(daemon.async_checkpoint(at("100"), false) == lines{"write checkpoint SHARD_END/0"});
    CHECK(daemon.answer() == lines{"write status shardEnded"});
  }
  SECTION("and reports it when no checkpoint was requested at all") {
    session_dialogue other(manual());
    other.process("100");
    other.shard_ended();
    CHECK(other.returns() == waiting_for_rest("for none"));
  }
  SECTION("and reports where the shard had been continued") {
    const auto [start, reported] = GENERATE(table<kclxx::sequence_position, std::string>({
        {at("50"), "only up to 50/0"},
        {at("TRIM_HORIZON"), "for none"},
    }));
    session_dialogue other(manual());
    other.initialize(start);
    other.returns();
    other.records("100");
    other.returns();
    other.shard_ended();
    CHECK(other.returns() == waiting_for_rest(reported));
  }
}

TEST_CASE("a waiting checkpoint in shard_ended can finish the shard", "[session][P48]") {
  session_dialogue daemon;
  daemon.process("100");
  daemon.answer();
  daemon.shard_ended();
  SECTION("without a position") {
    CHECK(daemon.checkpoint(1) == lines{"write checkpoint SHARD_END/0"});
    CHECK(daemon.answer() == lines{"notify 1: persisted"});
    CHECK(daemon.returns() == lines{"write status shardEnded"});
  }
  SECTION("and when it failed, the library tries again") {
    daemon.checkpoint(1);
    daemon.answer("InvalidStateException");
    CHECK(daemon.returns() == lines{"write checkpoint SHARD_END/0"});
  }
}

TEST_CASE("a request in manual mode reports completion, whatever its target and its outcome",
          "[session][P64][P50]") {
  enum class kind { call, call_with_deadline, with_handler, without_handler };
  const auto request =
      GENERATE(kind::call, kind::call_with_deadline, kind::with_handler, kind::without_handler);
  const auto target = GENERATE(std::optional(at("100")), std::optional<kclxx::sequence_position>());
  const bool is_in_shard_ended = GENERATE(false, true);
  using optional_text = std::optional<std::string>;
  const auto error = GENERATE(optional_text(), optional_text("InvalidStateException"),
                              optional_text("ThrottlingException"));
  CAPTURE(request, target.has_value(), is_in_shard_ended, error.value_or("none"));
  session_dialogue daemon(manual());
  lines all;
  const auto add = [&](const lines& more) { all.insert(all.end(), more.begin(), more.end()); };
  const auto answer_all = [&] {
    for (;;) {
      const lines more = daemon.is_unanswered() ? daemon.answer(error) : daemon.fires(timer::retry);
      if (more == lines{"the timer is not armed"}) return;
      add(more);
    }
  };
  daemon.start_batch("100");
  if (is_in_shard_ended) {
    daemon.returns();
    daemon.shard_ended();
  }
  if (request == kind::call || request == kind::call_with_deadline) {
    add(daemon.checkpoint(1, target));
    if (request == kind::call_with_deadline) add(daemon.deadline_passes(1));
    answer_all();
  } else {
    add(request == kind::with_handler ? daemon.async_checkpoint(1, target)
                                      : daemon.async_checkpoint(target));
  }
  if (!is_in_shard_ended) {
    add(daemon.returns());
    if (daemon.is_unanswered()) add(daemon.answer(error));
    daemon.shard_ended();
  }
  add(daemon.returns());
  answer_all();
  CHECK_FALSE(mentions(all, "the end of the shard waits"));
  CHECK(all.back() == (error ? "leave with 14" : "write status shardEnded"));
}

TEST_CASE("a handler is answered while shard_ended runs, but not that of the last record",
          "[session][P49]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  daemon.shard_ended();
  CHECK(daemon.async_checkpoint(1, at("40")) == lines{});
  CHECK(daemon.async_checkpoint(2, at("60"), false) == lines{});
  CHECK(daemon.async_checkpoint(3, at("100")) == lines{});
  CHECK(daemon.callback_lasts() == lines{"write checkpoint 60/0"});
  CHECK(daemon.answer() == lines{"notify 1: persisted", "notify 2: persisted"});
  CHECK(daemon.async_checkpoint(4, at("70"), false) == lines{"write checkpoint 70/0"});
  CHECK(daemon.answer() == lines{"notify 4: persisted"});
  CHECK(daemon.returns() == lines{"write checkpoint SHARD_END/0"});
  CHECK(daemon.answer() == lines{"notify 3: persisted", "write status shardEnded"});
}

TEST_CASE("a shutdown request checkpoints what is complete, awaited", "[session][P46][P28]") {
  session_dialogue daemon;
  daemon.process("100");
  daemon.answer();
  daemon.records("200");
  daemon.returns();
  daemon.shutdown_requested();
  CHECK(daemon.returns() == lines{"write checkpoint 200/0"});
  SECTION("then comes the status") {
    CHECK(daemon.answer() == lines{"write status shutdownRequested"});
  }
  SECTION("with retries") {
    CHECK(daemon.answer("ThrottlingException") == retrying("200/0"));
    CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 200/0"});
    CHECK(daemon.answer() == lines{"write status shutdownRequested"});
  }
  SECTION("which end in time, with the status all the same") {
    daemon.now += std::chrono::seconds(10);
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"log warning: the checkpoint at 200/0 failed: ThrottlingException",
                "arm retry timer",
                "log error: shutdown: records up to 200/0 are complete but not checkpointed: they "
                "will be delivered again",
                "write status shutdownRequested"});
  }
  SECTION("and not when the time for them has passed before the timer fires") {
    CHECK(daemon.answer("ThrottlingException") == retrying("200/0"));
    daemon.now += std::chrono::hours(1);
    CHECK(daemon.fires(timer::retry) ==
          lines{"log error: shutdown: records up to 200/0 are complete but not checkpointed: they "
                "will be delivered again",
                "write status shutdownRequested"});
  }
  SECTION("and a refusal costs duplicates only, which is logged") {
    CHECK(daemon.answer("InvalidStateException") ==
          lines{"log error: the checkpoint at 200/0 failed: InvalidStateException",
                "log error: shutdown: records up to 200/0 are complete but not checkpointed: they "
                "will be delivered again",
                "write status shutdownRequested"});
  }
}

TEST_CASE("a checkpoint that is unanswered when shutdown_requested returns is awaited",
          "[session][P46]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  daemon.shutdown_requested();
  CHECK(daemon.checkpoint(1, at("40"), false) == lines{"write checkpoint 40/0"});
  CHECK(daemon.async_checkpoint(at("100")) == lines{});
  CHECK(daemon.returns() == lines{});
  CHECK(daemon.answer() == lines{"notify 1: persisted", "write checkpoint 100/0"});
  CHECK(daemon.answer() == lines{"write status shutdownRequested"});
}

TEST_CASE("a call in shutdown_requested fails when no time is left for another try",
          "[session][P46]") {
  session_dialogue daemon(manual());
  daemon.process("100");
  daemon.shutdown_requested();
  CHECK(daemon.checkpoint(1, at("100")) == lines{"write checkpoint 100/0"});
  daemon.now += std::chrono::hours(1);
  CHECK(daemon.answer("ThrottlingException") ==
        lines{"notify 1: " + make_error_code(kclxx::checkpoint_errc::throttled).message(),
              "log warning: the checkpoint at 100/0 failed: ThrottlingException"});
}

TEST_CASE("at a shutdown request one checkpoint is tried, however late it is", "[session][P46]") {
  session_dialogue daemon;
  SECTION("with all the time for retries after a callback that took longer") {
    daemon.process("101");
    daemon.answer();
    daemon.records("102");
    daemon.returns();
    daemon.shutdown_requested();
    daemon.now += std::chrono::hours(1);
    CHECK(daemon.returns() == lines{"write checkpoint 102/0"});
    daemon.now += std::chrono::seconds(9);
    CHECK(daemon.answer("ThrottlingException") == retrying("102/0"));
    daemon.now += std::chrono::seconds(1);
    CHECK(daemon.fires(timer::retry) == lines{"write checkpoint 102/0"});
    CHECK(daemon.answer("ThrottlingException") ==
          lines{"log warning: the checkpoint at 102/0 failed: ThrottlingException",
                "arm retry timer",
                "log error: shutdown: records up to 102/0 are complete but not checkpointed: they "
                "will be delivered again",
                "write status shutdownRequested"});
  }
  SECTION("when a backoff would outlast that time") {
    constexpr std::chrono::seconds minute(60);
    session_dialogue other(run_options{.retry = {minute, minute}});
    other.process("101");
    other.answer("ThrottlingException");
    other.shutdown_requested();
    CHECK(other.returns() == lines{"write checkpoint 101/0"});
    CHECK(other.answer() == lines{"write status shutdownRequested"});
  }
}

TEST_CASE("the first failure decides, and a later one starts nothing again", "[session]") {
  session_dialogue daemon;
  daemon.start_batch("100");
  CHECK(daemon.failure() ==
        lines{"log error: no input", "request stop", "arm grace timer 10000 ms"});
  CHECK(daemon.failure() == lines{});
  CHECK(daemon.returns() == lines{"leave with 12"});
  // After the end nothing more happens.
  CHECK(daemon.returns() == lines{});
  CHECK(daemon.throws() == lines{});
  CHECK(daemon.throws_lease_gone() == lines{});
  CHECK(daemon.end_of_input() == lines{});
  CHECK(daemon.no_records() == lines{});
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
  CHECK(daemon.failure() == lines{"log error: no input", "notify 1: " + gone, "request stop",
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

TEST_CASE("once the input has ended behind lines that wait, each callback has the grace time",
          "[session][P57][P58]") {
  session_dialogue daemon(manual());
  daemon.start_batch("100");
  CHECK(daemon.end_behind_line() == lines{"arm ended timer 10000 ms"});
  CHECK(daemon.end_behind_line() == lines{});
  CHECK(daemon.returns() == lines{"write status processRecords"});
  CHECK(daemon.fires(timer::ended) == lines{});
  CHECK(daemon.records("101") == lines{"call process_records with 0", "arm ended timer 10000 ms"});
  SECTION("the session leaves with the end when it has its turn") {
    CHECK(daemon.returns() == lines{"write status processRecords"});
    CHECK(daemon.end_of_input() == lines{"request stop", "leave with 0"});
  }
  SECTION("or when a callback does not return") {
    CHECK(daemon.fires(timer::ended) ==
          lines{"log error: a callback did not return within the grace time", "request stop",
                "leave with 13"});
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

TEST_CASE("an exception of a timer while no action is open ends the session", "[session][P53]") {
  session_dialogue daemon;
  daemon.open();
  CHECK(daemon.throws() == lines{"log error: oops", "request stop", "leave with 10"});
}
