// SPDX-License-Identifier: Apache-2.0
// The plan of a shard's replay, step by step: without a child, a file or a clock.
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_daemon.hpp"
#include "tool/replay/replay_plan.hpp"

using namespace kclxx::replay;
using namespace std::chrono_literals;
using kclxx::test::Contains;
using kclxx::transcript::entry_kind;
using kclxx::transcript::line_summarizer;
using kclxx::transcript::summarized_entry;
using want = replay_plan::want;
using steps = std::vector<std::string>;

namespace {

const std::string initialize =
    R"({"action":"initialize","shardId":"s","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0})";
const std::string null_checkpoint =
    R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})";

std::string status_for(const std::string& action) {
  return R"({"action":"status","responseFor":")" + action + R"("})";
}

std::string answer(const std::string& error) {
  return R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":)" +
         error + "}";
}

std::string batch(std::uint64_t first) { return kclxx::test::records_line({"a", "b"}, first); }

/// Verbs that give back the effects, one text each. Time moves only when a test moves it.
class dialogue {
 public:
  explicit dialogue(const options& how = {}) : plan(how) {}
  dialogue(const options& how, legacy from) : plan(how, std::move(from)) {}

  steps daemon(const std::string& line, std::chrono::microseconds at = 0us) {
    return entry_of(entry_kind::daemon_line, line, at);
  }
  steps recorded_child(const std::string& line) { return entry_of(entry_kind::child_line, line); }
  steps end() {
    return after([&](effects& out) { plan.on_end_of_transcript(now, out); });
  }
  steps sent() {
    return after([&](effects& out) { plan.on_sent(now, out); });
  }
  steps child(const std::string& line) {
    return after([&](effects& out) { plan.on_child_line(line, now, out); });
  }
  steps end_of_output() {
    return after([&](effects& out) { plan.on_end_of_output(now, out); });
  }
  steps timeout() {
    return after([&](effects& out) { plan.on_timeout(now, out); });
  }
  steps time_comes() {
    return after([&](effects& out) { plan.on_time(now, out); });
  }
  /// Up to a batch that is in the pipe; the transcript is not read on.
  void start_batch() {
    daemon(initialize);
    sent();
    daemon(batch(10));
    REQUIRE(child(status_for("initialize")) == steps{"entry"});
    sent();
    REQUIRE(plan.wants() == want::entry);
  }

  replay_plan plan;
  replay_plan::time now{1h};

 private:
  steps entry_of(entry_kind kind, const std::string& line, std::chrono::microseconds at = 0us) {
    kept_ = line + std::string(line_summarizer::padding, ' ');
    summarized_entry entry{{at, kind, {kept_.data(), line.size()}}};
    entry.content.line_number = ++line_number_;
    if (kind == entry_kind::daemon_line) entry.summary = summarizer_.summarize(entry.content.line);
    return after([&](effects& out) { plan.on_entry(entry, now, out); });
  }
  template <class Event>
  static steps after(Event event) {
    effects out;
    event(out);
    steps result;
    for (const effect& effect : out) {
      if (const auto* line = std::get_if<write_line>(&effect)) {
        result.push_back(line->line);
      } else {
        result.emplace_back(std::holds_alternative<write_entry>(effect)   ? "entry"
                            : std::holds_alternative<close_input>(effect) ? "close"
                                                                          : "kill");
      }
    }
    return result;
  }

  line_summarizer summarizer_;
  std::string kept_;
  std::size_t line_number_ = 0;
};

}  // namespace

TEST_CASE("a line goes out only when the one before has its status", "[replay][plan]") {
  dialogue d;
  CHECK(d.plan.wants() == want::entry);
  CHECK(d.daemon(initialize) == steps{"entry"});
  CHECK(d.plan.wants() == want::child);  // nothing is read over the line that is being written
  CHECK(d.sent().empty());
  CHECK(d.plan.wants() == want::entry);
  CHECK(d.daemon(batch(10)).empty());
  CHECK(d.plan.wants() == want::child);
  CHECK(d.child("").empty());
  CHECK(d.child(status_for("initialize")) == steps{"entry"});
  d.sent();
  CHECK(d.end().empty());
  CHECK(d.child(status_for("processRecords")) == steps{"close"});
  CHECK(d.plan.wants() == want::child);
}

TEST_CASE("a status that comes while its line is written waits for that", "[replay][plan]") {
  dialogue d;
  d.daemon(initialize);
  CHECK(d.child(status_for("initialize")).empty());
  CHECK(d.plan.wants() == want::sent);
  CHECK_FALSE(d.plan.can_take_line());
  d.sent();
  CHECK(d.plan.wants() == want::entry);
  CHECK(d.daemon(batch(10)) == steps{"entry"});
}

TEST_CASE("what the daemon skips does not hold up what it writes", "[replay][plan]") {
  dialogue d;
  d.daemon(initialize);
  d.child("a print");
  CHECK(d.plan.wants() == want::child);
  CHECK(d.plan.result().breaches.count() == 1);
}

TEST_CASE("a checkpoint is answered when it is known what was recorded", "[replay][plan]") {
  dialogue d;
  d.start_batch();
  CHECK(d.child(null_checkpoint).empty());
  CHECK(d.plan.wants() == want::entry);
  d.recorded_child(null_checkpoint);
  d.daemon(answer(R"("ThrottlingException")"));
  d.recorded_child(null_checkpoint);
  d.daemon(answer("null"));
  CHECK(d.daemon(batch(20)) == steps{answer(R"("ThrottlingException")")});
  CHECK(d.child(null_checkpoint) == steps{answer("null")});
  CHECK(d.child(null_checkpoint) == steps{answer("null")});  // more than were recorded
  CHECK(d.child(status_for("processRecords")) == steps{"entry"});
}

TEST_CASE("a recorded ShutdownException counts from there on, also when nobody asked",
          "[replay][plan]") {
  dialogue d;
  d.start_batch();
  d.daemon(answer(R"("ShutdownException")"));
  d.daemon(batch(20));
  d.child(status_for("processRecords"));
  d.sent();
  d.end();
  CHECK(d.child(null_checkpoint) == steps{answer(R"("ShutdownException")")});
}

TEST_CASE("the time of a callback is from the line's last byte to its status", "[replay][plan]") {
  dialogue d;
  d.daemon(initialize);
  d.sent();
  d.daemon(batch(10));
  d.child(status_for("initialize"));
  d.now += 5s;  // the writing
  d.sent();
  d.now += 7ms;
  d.child(status_for("processRecords"));  // waits for the transcript
  d.now += 9s;
  d.end();
  CHECK(d.plan.result().counts.callbacks.max() == 7ms);
}

TEST_CASE("the time for the records begins when the child has started", "[replay][plan]") {
  dialogue d;
  d.daemon(initialize);
  d.sent();
  d.daemon(batch(10));
  d.now += 5s;
  d.child(status_for("initialize"));
  CHECK(d.plan.result().took() == 0s);
  d.sent();
  d.end();
  d.now += 7ms;
  d.child(status_for("processRecords"));
  CHECK(d.plan.result().took() == 7ms);
}

TEST_CASE("a status that came in time is not late, however late the transcript is",
          "[replay][plan]") {
  options how;
  how.timeout = 1500ms;
  dialogue d(how);
  d.start_batch();
  CHECK(d.plan.deadline() == d.now + 1500ms);
  d.child(status_for("processRecords"));
  CHECK(d.plan.wants() == want::entry);
  CHECK(d.plan.deadline() == replay_plan::time::max());
}

TEST_CASE("an action without its status until the deadline is a hanging child", "[replay][plan]") {
  options how;
  how.timeout = 1500ms;
  dialogue d(how);
  d.start_batch();
  d.end();
  CHECK(d.plan.deadline() == d.now + 1500ms);
  CHECK(d.timeout() == steps{"kill"});
  CHECK(d.plan.wants() == want::child_exit);
  d.plan.on_exit(0, 9);
  CHECK(d.plan.wants() == want::nothing);
  CHECK(d.plan.result().failure->what == "no status for processRecords within 1.5 s");
  CHECK(d.plan.result().breaches.count() == 0);
}

TEST_CASE("the recorded pace counts from the first line", "[replay][plan]") {
  options how;
  how.recorded_pace = true;
  dialogue d(how);
  d.daemon(initialize, 1s);
  d.sent();
  d.daemon(batch(10), 3s);
  d.now += 500ms;
  CHECK(d.child(status_for("initialize")).empty());
  CHECK(d.plan.wants() == want::pause);
  CHECK(d.plan.deadline() == d.now + 1500ms);
  CHECK(d.time_comes().empty());
  d.now += 1500ms;
  CHECK(d.time_comes() == steps{"entry"});
  d.sent();
  d.daemon(batch(20), 4s);
  d.now += 10s;  // the child was slower than that
  CHECK(d.child(status_for("processRecords")) == steps{"entry"});
}

TEST_CASE("a shutdown as a fault takes the place of the batch, and then the input ends",
          "[replay][plan]") {
  options how;
  how.inject.shutdown_at = trigger{trigger::unit::record, 3};
  dialogue d(how);
  d.start_batch();
  d.daemon(batch(20));
  CHECK(d.child(status_for("processRecords")) == steps{R"({"action":"shutdownRequested"})"});
  d.sent();
  CHECK(d.child(status_for("shutdownRequested")) == steps{"close"});
  d.end_of_output();
  d.plan.on_exit(0, 0);
  CHECK(d.plan.result().counts.batches == 1);
  CHECK_FALSE(d.plan.result().damage);
  CHECK(d.plan.result().notes.empty());
}

TEST_CASE("a child whose output ends before its first action is not waited for", "[replay][plan]") {
  dialogue d;
  d.end_of_output();
  d.daemon(initialize);
  d.end_of_output();
  CHECK(d.plan.wants() == replay_plan::want::child_exit);
}

TEST_CASE("an unknown action comes before a batch, and needs its status", "[replay][plan]") {
  options how;
  how.inject.unknown_action = 1;
  dialogue d(how);
  d.daemon(initialize);
  d.sent();
  d.daemon(batch(10));
  CHECK(d.child(status_for("initialize")) == steps{R"({"action":"kclxxUnknownAction"})"});
  d.sent();
  CHECK(d.plan.wants() == want::child);
  CHECK(d.child(status_for("kclxxUnknownAction")) == steps{"entry"});
  d.sent();
  d.end();
  d.child(status_for("processRecords"));
  CHECK(d.plan.result().counts.batches == 1);
  CHECK(d.plan.result().breaches.count() == 0);
}

TEST_CASE("a transcript without a line of the daemon has nothing to play, and is damaged",
          "[replay][plan]") {
  dialogue d;
  CHECK(d.end() == steps{"close"});
  d.end_of_output();
  d.plan.on_exit(0, 0);
  REQUIRE(d.plan.result().damage);
  CHECK(d.plan.result().damage->what == "there is no dialogue in it: no line of the daemon");
  CHECK(d.plan.result().notes.empty());
}

TEST_CASE("a successor begins after what was persisted, in the middle of a batch, too",
          "[replay][plan][successor]") {
  options how;
  how.inject.kill_at = trigger{trigger::unit::batch, 2};
  dialogue first(how);
  first.start_batch();
  first.daemon(batch(20));
  CHECK(first.child(R"({"action":"checkpoint","sequenceNumber":"10","subSequenceNumber":0})")
            .size() == 1);
  CHECK(first.child(status_for("processRecords")) == steps{"entry"});
  CHECK(first.sent() == steps{"kill"});
  CHECK(first.plan.wants() == want::child_exit);
  first.plan.on_exit(0, 9);
  CHECK(first.plan.wants() == want::nothing);
  CHECK(first.plan.result().failure == std::nullopt);
  auto left = first.plan.take_legacy();
  REQUIRE(left);

  dialogue next(how, *std::move(left));
  CHECK(
      next.daemon(initialize) ==
      steps{
          R"({"action":"initialize","shardId":"s","sequenceNumber":"10","subSequenceNumber":0})"});
  next.sent();
  next.daemon(batch(10));
  CHECK(next.child(status_for("initialize")) == steps{kclxx::test::records_line({"b"}, 11)});
  next.sent();
  next.daemon(batch(20));
  CHECK(next.child(status_for("processRecords")) == steps{"entry"});
  CHECK(next.sent().empty());  // kill-at was met
  next.end();
  CHECK(next.child(status_for("processRecords")) == steps{"close"});
  next.end_of_output();
  next.plan.on_exit(0, 0);
  CHECK_FALSE(next.plan.take_legacy());
  const summary& result = next.plan.result();
  CHECK(result.counts.records == 5);
  CHECK(result.counts.batches == 3);
  CHECK(result.counts.successors == 1);
  CHECK(result.notes.empty());
  CHECK(result.breaches.count() == 0);
}

TEST_CASE("a successor does not get a batch that was persisted", "[replay][plan][successor]") {
  dialogue next({}, legacy{{}, fault_schedule({}), kclxx::sequence_position("11"), {}});
  next.daemon(initialize);
  next.sent();
  CHECK(next.daemon(batch(10)).empty());
  CHECK(next.plan.wants() == want::entry);
  next.daemon(batch(20));
  CHECK(next.child(status_for("initialize")) == steps{"entry"});
}

TEST_CASE("a child may be killed in place of its checkpoint's being persisted",
          "[replay][plan][successor]") {
  options how;
  how.inject.kill = 0.999999;
  dialogue d(how);
  d.start_batch();
  d.end();
  CHECK(d.child(null_checkpoint) == steps{"kill"});
  d.plan.on_exit(0, 9);
  const auto left = d.plan.take_legacy();
  REQUIRE(left);
  CHECK(left->persisted == kclxx::sequence_position("TRIM_HORIZON"));
  CHECK(left->so_far.counts.checkpoints_asked == 1);
  CHECK(left->so_far.counts.checkpoints_answered == 0);
}
