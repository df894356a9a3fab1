// SPDX-License-Identifier: Apache-2.0
// A shard's replay with a scripted child: without a process, a file or a clock.
#include "tool/replay/player.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_child.hpp"
#include "support/scripted_daemon.hpp"
#include "tool/transcript/transcript.hpp"

using namespace kclxx::replay;
using namespace std::chrono_literals;
using namespace kclxx::test;
using steps = std::vector<std::string>;
using time_point = scripted_child::time_point;

namespace {

const std::string initialize =
    R"({"action":"initialize","shardId":"s","sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0})";
const std::string lease_lost = R"({"action":"leaseLost"})";
const std::string checkpoint_at_10 =
    R"({"action":"checkpoint","sequenceNumber":"10","subSequenceNumber":0})";

const std::string batch_status = status_for("processRecords");

std::string answer(const std::string& error) {
  return R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":)" +
         error + "}";
}

std::string batch(std::uint64_t first) { return kclxx::test::records_line({"a", "b"}, first); }

/// Line by line; each takes a time to come.
class slow_source : public kclxx::transcript::byte_source {
 public:
  explicit slow_source(scripted_child& child) : child_(child) {}
  std::size_t read(char* target, std::size_t) override {
    if (lines.empty()) return 0;
    child_.pass(each_takes);
    const std::string line = std::move(lines.front()) + "\n";
    lines.pop_front();
    line.copy(target, line.size());
    return line.size();
  }

  std::deque<std::string> lines;
  std::chrono::nanoseconds each_takes{};

 private:
  scripted_child& child_;
};

class replayed {
 public:
  explicit replayed(options how = {}) : options_(std::move(how)) {}

  /// A transcript with both sides.
  void header() {
    source.lines.emplace_back(
        R"({"kclxx_transcript":1,"shard":"s","started":"x","command":["./child"]})");
  }
  void entry(const std::string& from, const std::string& line, std::chrono::microseconds at = 0us) {
    source.lines.push_back(R"({"at":)" + std::to_string(at.count()) + R"(,"from":")" + from +
                           R"(","line":)" + line + "}");
  }
  void begin() {
    reader_.emplace(source, "file");
    player_.emplace(options_, shard, *reader_, child);
  }
  /// The lines that went out.
  steps next() {
    player_->play_next();
    return child.taken();
  }
  const summary& play() {
    begin();
    while (player_->play_next()) {
    }
    player_->finish();
    return shard.result;
  }

  scripted_child child;
  slow_source source{child};

 private:
  const options options_;
  std::optional<kclxx::transcript::reader> reader_;
  std::optional<player> player_;

 public:
  shard_play shard{options_};
};

}  // namespace

TEST_CASE("a line goes out only when the one before has its status", "[replay][player]") {
  replayed r;
  r.source.lines = {initialize, batch(10), lease_lost};
  r.begin();
  CHECK(r.next() == steps{initialize});
  r.child.on("processRecords", {{{""}, {"a print"}, {null_checkpoint}, {batch_status, 2s}}});
  CHECK(r.next() == steps{batch(10), answer("null")});
  CHECK(r.child.now() == time_point{1h + 2s});
  CHECK(r.next() == steps{lease_lost, "close"});
  CHECK(r.shard.result.breaches.count() == 1);  // the print
}

TEST_CASE("a status that comes while its line is written waits for that", "[replay][player]") {
  replayed r;
  r.source.lines = {initialize, batch(10), batch(20)};
  r.begin();
  r.next();
  r.child.on("processRecords", {{}, 5s, {{batch_status, 1s}}});
  r.next();
  CHECK(r.child.now() == time_point{1h + 5s});
  CHECK(r.shard.result.counts.callbacks.max() == 0s);
  CHECK(r.next() == steps{batch(20)});
}

TEST_CASE("while an answer is written, no line of the child is taken", "[replay][player]") {
  replayed r;
  r.source.lines = {initialize, batch(10)};
  r.child.on("processRecords", {{{null_checkpoint}, {"a print"}, {batch_status}}});
  r.child.on("checkpoint", {{}, 3s});
  r.begin();
  r.next();
  r.next();
  CHECK(r.child.now() == time_point{1h + 3s});
  CHECK(r.shard.result.breaches.count() == 1);
}

TEST_CASE("a child that does not read its answer keeps the daemon waiting, and is named so",
          "[replay][player]") {
  const std::string both_wait =
      "both wait for each other: the daemon writes an answer before it reads on";
  replayed r({.timeout = 7s});
  r.source.lines = {initialize, batch(10), lease_lost};
  SECTION("while the answer is written") {
    r.child.on("processRecords", {{{null_checkpoint}, {null_checkpoint}, {batch_status}}});
    r.child.on("checkpoint", {{}, 1h});
  }
  SECTION("while the action's own line is written") {
    r.child.on("processRecords", {{}, 1h, {{null_checkpoint}}});
  }
  CHECK(r.play().failure->what == both_wait);
  CHECK(r.child.now() == time_point{1h + 7s});
  CHECK(r.child.taken().back() == "kill");
}

TEST_CASE("a checkpoint is answered as it was recorded", "[replay][player]") {
  replayed r;
  r.header();
  r.entry("daemon", initialize);
  r.entry("daemon", batch(10));
  r.entry("child", null_checkpoint);
  r.entry("daemon", answer(R"("ThrottlingException")"));
  r.entry("child", null_checkpoint);
  r.entry("daemon", answer("null"));
  r.child.on("processRecords",
             {{{null_checkpoint}, {null_checkpoint}, {null_checkpoint}, {batch_status}}});
  r.begin();
  r.next();
  CHECK(r.next() == steps{batch(10), answer(R"("ThrottlingException")"), answer("null"),
                          answer("null")});  // more than were recorded
}

TEST_CASE("a recorded ShutdownException loses the lease, also when this child has not asked",
          "[replay][player]") {
  replayed r;
  r.header();
  r.entry("daemon", initialize);
  r.entry("daemon", batch(10));
  r.entry("daemon", answer(R"("ShutdownException")"));
  r.entry("daemon", batch(20));
  r.begin();
  r.next();
  r.next();
  r.child.on("processRecords", {{{null_checkpoint}, {batch_status}}});
  CHECK(r.next() == steps{batch(20), answer(R"("ShutdownException")")});
}

TEST_CASE("the time of a callback is from the line's last byte to its status", "[replay][player]") {
  replayed r;
  r.source.lines = {initialize, batch(10), lease_lost};
  r.source.each_takes = 9s;
  r.child.on("processRecords", {{{batch_status, 7ms}}, 5s});
  CHECK(r.play().counts.callbacks.max() == 7ms);
}

TEST_CASE("a status that came in time is not late, however late the transcript is",
          "[replay][player]") {
  replayed r({.timeout = 1500ms});
  r.source.lines = {initialize, batch(10), batch(20)};
  r.source.each_takes = 1h;  // also between a checkpoint and its answer
  r.child.on("processRecords", {{{null_checkpoint}, {batch_status, 1s}}});
  const summary& result = r.play();
  CHECK_FALSE(result.failure);
  CHECK(result.counts.batches == 2);
}

TEST_CASE("a status from before its action was sent is a breach", "[replay][player]") {
  replayed r;
  r.source.lines = {initialize, batch(10), lease_lost};
  r.begin();
  r.next();
  r.child.say_at_once(batch_status);
  r.child.pass(1ns);
  r.next();
  REQUIRE(r.shard.result.breaches.count() == 1);
  CHECK_THAT(r.shard.result.breaches.first().front().what, Contains("was there before"));
}

TEST_CASE("a shutdown as a fault takes the place of the batch, and then the input ends",
          "[replay][player]") {
  replayed r({.faults = {.shutdown_at = 2}});
  r.source.lines = {initialize, batch(10), batch(20)};
  const summary& result = r.play();
  CHECK(r.child.taken() ==
        steps{initialize, batch(10), R"({"action":"shutdownRequested"})", "close"});
  CHECK(result.counts.batches == 1);
  CHECK_FALSE(result.damage);
  CHECK(result.notes.empty());
}

TEST_CASE("a transcript without a line of the daemon has nothing to play, and is damaged",
          "[replay][player]") {
  replayed r;
  r.header();
  const summary& result = r.play();
  CHECK(r.child.taken() == steps{"close"});
  REQUIRE(result.damage);
  CHECK(result.damage->what == "there is no dialogue in it: no line of the daemon");
  CHECK(result.notes.empty());
}

TEST_CASE("a successor begins after what was persisted, in the middle of a batch, too",
          "[replay][player][successor]") {
  replayed r({.faults = {.kill_at = 2}});
  r.source.lines = {initialize, batch(10), batch(20)};
  r.child.on("processRecords", {{{checkpoint_at_10}, {batch_status}}});
  r.play();
  CHECK(r.child.taken().back() == "kill");
  CHECK_FALSE(r.shard.result.failure);
  REQUIRE(r.shard.successor_begins == kclxx::sequence_position("10"));

  r.source.lines = {initialize, batch(10), batch(20)};
  r.child = scripted_child();
  const summary& result = r.play();
  CHECK_FALSE(r.shard.successor_begins);
  CHECK(
      r.child.taken() ==
      steps{R"({"action":"initialize","shardId":"s","sequenceNumber":"10","subSequenceNumber":0})",
            kclxx::test::records_line({"b"}, 11), batch(20), "close"});
  CHECK(result.counts.records == 5);
  CHECK(result.counts.batches == 3);
  CHECK(result.counts.successors == 1);
  CHECK(result.notes.empty());
  CHECK(result.breaches.count() == 0);
}

TEST_CASE("a child may be killed before its checkpoint is persisted",
          "[replay][player][successor]") {
  replayed r({.faults = {.kill = 0.999999}});
  r.source.lines = {initialize, batch(10)};
  r.child.on("processRecords", {{{null_checkpoint}}});
  const summary& result = r.play();
  CHECK(r.child.taken().back() == "kill");
  CHECK(r.shard.successor_begins == kclxx::sequence_position("TRIM_HORIZON"));
  CHECK(result.counts.checkpoints_asked == 1);
  CHECK(result.counts.checkpoints_answered == 0);
}
