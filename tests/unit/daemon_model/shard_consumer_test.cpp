// SPDX-License-Identifier: Apache-2.0
// The daemon model. tests/host/conformance holds it against the real classes. These tests have the
// rules that all tests with the model rely on.
#include "daemon_model/shard_consumer.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using kclxx::sequence_position;
using namespace kclxx::daemon_model;
using lines = std::vector<std::string>;

namespace {

std::string status_for(const std::string& action) {
  return R"({"action":"status","responseFor":")" + action + R"("})";
}

std::string checkpoint_at(const std::string& sequence_number, int sub = 0) {
  return R"({"action":"checkpoint","sequenceNumber":")" + sequence_number +
         R"(","subSequenceNumber":)" + std::to_string(sub) + "}";
}

const std::string null_checkpoint =
    R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})";

/// Its functions give one event to the model, and return the events that follow, a line each.
class dialogue {
 public:
  dialogue() : consumer(row) {}

  lines call(action_kind kind, const std::optional<sequence_position>& largest = std::nullopt) {
    return call(kind, kclxx::protocol::action_name(kind), largest);
  }
  lines call(action_kind kind, std::string_view name,
             const std::optional<sequence_position>& largest = std::nullopt) {
    return after([&](auto& out) { consumer.call(kind, name, largest, out); });
  }
  lines records(const std::string& largest) {
    return call(action_kind::process_records, sequence_position(largest));
  }
  lines child(const std::string& line) {
    return after([&](auto& out) { consumer.on_line(line, out); });
  }
  lines child_ends() {
    return after([&](auto& out) { consumer.on_end_of_output(out); });
  }
  /// Plays up to a batch, whose status is then waited for.
  void start_batch(const std::string& largest) {
    call(action_kind::initialize);
    child(status_for("initialize"));
    records(largest);
  }

  lease row{sequence_position("TRIM_HORIZON")};
  shard_consumer consumer;
  daemon_events last;

 private:
  template <class Event>
  lines after(Event event) {
    last.clear();
    event(last);
    lines result;
    for (const daemon_event& happened : last) result.push_back(to_string(happened));
    return result;
  }
};

}  // namespace

TEST_CASE("a call returns with the status of its own name", "[daemon_model][P24]") {
  dialogue daemon;
  CHECK(daemon.call(action_kind::initialize).empty());
  CHECK(daemon.child("").empty());
  CHECK(daemon.child(status_for("initialize")) == lines{"initialize returned"});
  CHECK(daemon.records("101").empty());
  CHECK(daemon.child(status_for("processRecords")) == lines{"processRecords returned"});
  CHECK(daemon.call(action_kind::lease_lost).empty());
  CHECK(daemon.child(status_for("leaseLost")) ==
        lines{"leaseLost returned", "close the child's input"});
}

TEST_CASE("a wrong status, or the end of the output, ends the worker", "[daemon_model][P26]") {
  dialogue wrong;
  wrong.call(action_kind::initialize);
  CHECK(wrong.child(status_for("processRecords")) ==
        lines{"close the child's input",
              "the worker ends: initialize: the status is for \"processRecords\" instead of "
              "initialize"});
  dialogue nameless;
  nameless.call(action_kind::initialize);
  CHECK(nameless.child(R"({"action":"status"})").back() ==
        "the worker ends: initialize: the status is for nothing instead of initialize");
  dialogue null;
  null.call(action_kind::initialize);
  CHECK(null.child("null") ==
        lines{"skipped (null is not a message): null", "close the child's input",
              "the worker ends: initialize: the daemon fails on a null message"});
  dialogue gone;
  gone.call(action_kind::initialize);
  CHECK(gone.child_ends() ==
        lines{"close the child's input", "the worker ends: initialize: the child's output ended"});
  CHECK(gone.child_ends().empty());
  CHECK(gone.child("x") == lines{"nobody reads: x"});
}

TEST_CASE("a failed shutdownRequested is only logged; the lease lost after it ends the worker",
          "[daemon_model][P27]") {
  dialogue daemon;
  daemon.call(action_kind::initialize);
  daemon.child(status_for("initialize"));
  daemon.call(action_kind::shutdown_requested);
  CHECK(daemon.child_ends() == lines{"failed: shutdownRequested: the child's output ended"});
  CHECK(daemon.call(action_kind::lease_lost) ==
        lines{"close the child's input", "the worker ends: leaseLost: the child's output ended"});
}

TEST_CASE("a line with an unknown field is skipped, and the daemon continues to wait",
          "[daemon_model][P20]") {
  dialogue daemon;
  daemon.call(action_kind::initialize);
  CHECK(daemon.child(R"({"action":"status","responseFor":"initialize","extra":1})")
            .front()
            .find("skipped (the daemon knows no field 'extra' in status)") == 0);
  CHECK(daemon.consumer.is_waiting());
  CHECK(daemon.child("hello" + status_for("initialize")).front().find("skipped (not JSON)") == 0);
  CHECK(daemon.child(R"({"action":"leaseLost"})") ==
        lines{R"(skipped (only the daemon sends leaseLost): {"action":"leaseLost"})"});
  CHECK(daemon.child(status_for("initialize") + "hello") == lines{"initialize returned"});
}

TEST_CASE("checkpoints are answered in order, before the status", "[daemon_model][P39]") {
  dialogue daemon;
  daemon.start_batch("200");
  CHECK(daemon.child(checkpoint_at("150", 3)) ==
        lines{"checkpoint 150/3 answered: ok, at the lease: 150/3"});
  CHECK(std::get<answered>(daemon.last.front()).line ==
        R"({"action":"checkpoint","sequenceNumber":"150","subSequenceNumber":3,"error":null})");
  CHECK(daemon.child(null_checkpoint) ==
        lines{"checkpoint null answered: ok, at the lease: 200/0"});
  CHECK(daemon.row.checkpoint() == sequence_position("200"));
}

TEST_CASE("a checkpoint below the last or above what was delivered is refused",
          "[daemon_model][P36]") {
  dialogue daemon;
  daemon.start_batch("200");
  daemon.child(checkpoint_at("150"));
  CHECK(daemon.child(checkpoint_at("149")) ==
        lines{"checkpoint 149/0 answered: IllegalArgumentException"});
  CHECK(daemon.child(checkpoint_at("200", 1)) ==
        lines{"checkpoint 200/1 answered: IllegalArgumentException"});
  CHECK(daemon.child(checkpoint_at("abc")) ==
        lines{"checkpoint abc/0 answered: IllegalArgumentException"});
  CHECK(daemon.child(checkpoint_at("150", -1)) ==
        lines{"checkpoint 150/-1 answered: IllegalArgumentException"});
  CHECK(daemon.child(checkpoint_at("150")) == lines{"checkpoint 150/0 answered: ok"});
  CHECK(daemon.child(checkpoint_at("150", 1)) ==
        lines{"checkpoint 150/1 answered: ok, at the lease: 150/1"});
  daemon.child(status_for("processRecords"));
  daemon.records("180");  // lower than what was delivered before
  CHECK(daemon.child(checkpoint_at("200")) ==
        lines{"checkpoint 200/0 answered: ok, at the lease: 200/0"});
}

TEST_CASE("positions compare as numbers, and are the same only as texts", "[daemon_model][P35]") {
  dialogue daemon;
  daemon.start_batch("200");
  CHECK(daemon.child(checkpoint_at("0200")) ==
        lines{"checkpoint 0200/0 answered: ok, at the lease: 0200/0"});
  CHECK(daemon.child(checkpoint_at("200")) ==
        lines{"checkpoint 200/0 answered: ok, at the lease: 200/0"});
  daemon.child(status_for("processRecords"));
  daemon.call(action_kind::shard_ended);
  CHECK(daemon.child(checkpoint_at("SHARD_END", 5)) ==
        lines{"checkpoint SHARD_END/5 answered: ok, at the lease: SHARD_END/5"});
  CHECK(daemon.child(status_for("shardEnded")) == lines{"shardEnded returned",
                                                        "the end of the shard is not checkpointed",
                                                        "close the child's input"});
}

TEST_CASE("a carriage return ends a line", "[daemon_model][P23]") {
  dialogue daemon;
  daemon.call(action_kind::initialize);
  CHECK(daemon.child("x\r" + status_for("initialize") + "\r") ==
        lines{"skipped (not JSON): x", "initialize returned"});
}

TEST_CASE("a checkpoint in initialize and in leaseLost has no checkpointer",
          "[daemon_model][P38]") {
  dialogue daemon;
  daemon.call(action_kind::initialize);
  CHECK(daemon.child(null_checkpoint) == lines{"checkpoint null answered: InvalidStateException"});
  daemon.child(status_for("initialize"));
  daemon.call(action_kind::lease_lost);
  CHECK(daemon.child(null_checkpoint) == lines{"checkpoint null answered: InvalidStateException"});
}

TEST_CASE("an ending that an old daemon calls shutdown has the status shutdown",
          "[daemon_model][P11]") {
  dialogue daemon;
  daemon.start_batch("200");
  daemon.child(status_for("processRecords"));
  daemon.call(action_kind::shard_ended, std::string_view("shutdown"));
  CHECK(daemon.child(null_checkpoint) ==
        lines{"checkpoint null answered: ok, at the lease: SHARD_END/0"});
  CHECK(daemon.child(status_for("shutdown")) ==
        lines{"shardEnded returned", "close the child's input"});
}

TEST_CASE("lines after a status wait unread for the next call", "[daemon_model][P25]") {
  dialogue daemon;
  daemon.start_batch("200");
  daemon.child(status_for("processRecords"));
  CHECK(daemon.child(checkpoint_at("200")).empty());
  CHECK(daemon.records("300") == lines{"checkpoint 200/0 answered: ok, at the lease: 200/0"});
  daemon.child(status_for("processRecords"));
  CHECK(daemon.child(checkpoint_at("300")).empty());
  daemon_events out;
  daemon.consumer.close(out);
  CHECK(out.size() == 2);
  CHECK(std::holds_alternative<lost_line>(out.back()));
}

TEST_CASE("the null checkpoint finishes a shard, the last position only when it is new",
          "[daemon_model][P48]") {
  const bool is_stored = GENERATE(true, false);
  dialogue daemon;
  daemon.start_batch("200");
  if (is_stored) daemon.child(checkpoint_at("200"));
  daemon.child(status_for("processRecords"));
  daemon.call(action_kind::shard_ended);
  SECTION("null") {
    CHECK(daemon.child(null_checkpoint) ==
          lines{"checkpoint null answered: ok, at the lease: SHARD_END/0"});
    CHECK(daemon.child(checkpoint_at("200")) ==
          lines{"checkpoint 200/0 answered: IllegalArgumentException"});
    CHECK(daemon.child(status_for("shardEnded")) ==
          lines{"shardEnded returned", "close the child's input"});
  }
  SECTION("the last position") {
    if (!is_stored) {
      CHECK(daemon.child(checkpoint_at("200")) ==
            lines{"checkpoint 200/0 answered: ok, at the lease: SHARD_END/0"});
      return;
    }
    CHECK(daemon.child(checkpoint_at("200")) == lines{"checkpoint 200/0 answered: ok"});
    CHECK(daemon.child(status_for("shardEnded")) ==
          lines{"shardEnded returned", "the end of the shard is not checkpointed",
                "close the child's input"});
  }
}

TEST_CASE("a lost lease answers ShutdownException, and faults answer what they are set to",
          "[daemon_model][P42]") {
  dialogue daemon;
  daemon.start_batch("200");
  int attempts = 0;
  daemon.row.set_fault([&](const sequence_position&) -> std::optional<std::string> {
    if (++attempts == 1) return "ThrottlingException";
    return std::nullopt;
  });
  CHECK(daemon.child(checkpoint_at("200")) ==
        lines{"checkpoint 200/0 answered: ThrottlingException, at the lease: 200/0"});
  CHECK(daemon.child(checkpoint_at("200")) ==
        lines{"checkpoint 200/0 answered: ok, at the lease: 200/0"});
  daemon.row.lose();
  daemon.child(status_for("processRecords"));
  daemon.records("300");
  CHECK(daemon.child(null_checkpoint) ==
        lines{"checkpoint null answered: ShutdownException, at the lease: 300/0"});
  CHECK(daemon.row.checkpoint() == sequence_position("200"));
}

TEST_CASE("a lease is lost by a ShutdownException, and losing it again takes nothing",
          "[daemon_model][P42]") {
  lease first(sequence_position("TRIM_HORIZON"));
  first.set_fault([](const sequence_position&) { return "ShutdownException"; });
  CHECK(first.set_checkpoint(sequence_position("1")) == "ShutdownException");
  CHECK(first.is_lost());
  lease second = first.take_over();
  first.lose();
  CHECK_FALSE(second.is_lost());
  CHECK(second.set_checkpoint(sequence_position("2")) == std::nullopt);
}

TEST_CASE("a daemon makes its calls in order", "[daemon_model][P28]") {
  dialogue daemon;
  CHECK_FALSE(daemon.consumer.can_call(action_kind::process_records));
  CHECK(daemon.consumer.can_call(action_kind::initialize));
  daemon.call(action_kind::initialize);
  CHECK_FALSE(daemon.consumer.can_call(action_kind::process_records));
  daemon.child(status_for("initialize"));
  CHECK_FALSE(daemon.consumer.can_call(action_kind::initialize));
  CHECK(daemon.consumer.can_call(action_kind::shutdown_requested));
  daemon.call(action_kind::shutdown_requested);
  daemon.child(status_for("shutdownRequested"));
  CHECK_FALSE(daemon.consumer.can_call(action_kind::process_records));
  CHECK(daemon.consumer.can_call(action_kind::shard_ended));
  daemon.call(action_kind::lease_lost);
  daemon.child(status_for("leaseLost"));
  CHECK_FALSE(daemon.consumer.can_call(action_kind::shard_ended));
}
