// SPDX-License-Identifier: Apache-2.0
// How rules judge. The child is a function. tests/process/check_test.cpp has a broken child for
// each rule.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_child.hpp"
#include "support/text.hpp"
#include "tool/check/rule.hpp"

using namespace kclxx::check;
using namespace kclxx::test;
using lines = std::vector<std::string>;

namespace {

/// The lines that the child answers to a line.
using answers = std::function<lines(const std::string&)>;

/// A child that answers, and checkpoints where it must, without looking at the result.
lines obliging(const std::string& line) {
  const std::string action = action_of(line);
  if (action == "checkpoint") return {};
  if (action == "shardEnded") return {null_checkpoint, status_for(action)};
  return {status_for(action)};
}

result run_rule(const std::string& name, const answers& answer, const settings& with = {}) {
  const auto& rules = all_rules();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const rule& rule) { return rule.name == name; });
  REQUIRE(found != rules.end());
  const auto react = [answer](const std::string& line) {
    scripted_child::reaction reaction;
    for (std::string& text : answer(line)) {
      reaction.lines.push_back({""});
      reaction.lines.push_back({std::move(text)});
    }
    return reaction;
  };
  return kclxx::check::run_rule(
      *found, [&] { return std::make_unique<scripted_child>(react); }, with);
}

using verdict = result::verdict;

}  // namespace

TEST_CASE("a result has what was seen and what the child wrote to stderr", "[check]") {
  CHECK(run_rule("lease-lost", obliging).is == verdict::passed);
  const auto judged = run_rule("lease-lost", [](const std::string& line) {
    return action_of(line) == "leaseLost" ? lines{} : obliging(line);
  });
  CHECK(judged.is == verdict::failed);
  CHECK(judged.seen == "no status for leaseLost: none within 10 s (--timeout)");
  CHECK(judged.error_text == "its last words");
}

TEST_CASE("a rule is skipped when the child fails before the step that it judges", "[check]") {
  const auto mute = [](const std::string&) { return lines{}; };
  CHECK(run_rule("initialize", mute).is == verdict::failed);
  const auto judged = run_rule("lease-lost", mute);
  CHECK(judged.is == verdict::skipped);
  CHECK(contains(judged.seen, "no status for initialize"));
  CHECK(judged.has_timed_out);
  CHECK(run_rule("shard-end", [](const std::string& line) {
          return action_of(line) == "shardEnded" ? lines{} : obliging(line);
        }).is == verdict::skipped);
}

TEST_CASE("each child has a shard of its own, in each run another one", "[check]") {
  std::vector<std::string> seen;
  const auto keep = [&](const std::string& line) {
    const auto at = line.find("shardId-");
    if (at != std::string::npos) seen.push_back(line.substr(at, 20));
    return obliging(line);
  };
  run_rule("one-status", keep);  // it starts two
  run_rule("lease-lost", keep);
  settings later;
  later.run = 1;
  run_rule("lease-lost", keep, later);
  REQUIRE(seen.size() == 4);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const std::string& line) {
    return line.find_first_not_of("0123456789", 8) == std::string::npos;
  }));
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("a checkpoint that the daemon refused is not taken for a throttled one", "[check]") {
  const auto judged = run_rule("throttled-checkpoint", [](const std::string& line) {
    lines said = obliging(line);
    if (action_of(line) == "processRecords") {
      said.insert(said.begin(),
                  R"({"action":"checkpoint","sequenceNumber":"999","subSequenceNumber":0})");
    }
    return said;
  });
  CHECK(judged.is == verdict::failed);
  CHECK(judged.seen ==
        "the daemon refuses a checkpoint with sequence number \"999\" and sub-sequence number 0 in "
        "processRecords: IllegalArgumentException; TRIM_HORIZON/0 was persisted, 103/0 the largest "
        "delivered");
}

TEST_CASE("a rule with a fault judges what met it, not what the daemon refused", "[check]") {
  const std::string beyond =
      R"({"action":"checkpoint","sequenceNumber":"999","subSequenceNumber":0})";
  const auto says_in = [](const std::string& action, const std::string& first) {
    return [=](const std::string& line) {
      lines said = obliging(line);
      if (action_of(line) == action) said.insert(said.begin(), first);
      return said;
    };
  };
  CHECK(contains(run_rule("throttled-at-shutdown", says_in("shutdownRequested", beyond)).seen,
                 "the daemon refuses a checkpoint"));
  CHECK(run_rule("throttled-at-shutdown", says_in("shutdownRequested", null_checkpoint)).is ==
        verdict::failed);
  // A checkpoint that is refused in the batches and throttled at the shutdown has to come again.
  const auto judged = run_rule("throttled-checkpoint", [&](const std::string& line) {
    return says_in("processRecords", beyond)(line).size() > 1
               ? says_in("processRecords", beyond)(line)
               : says_in("shutdownRequested", null_checkpoint)(line);
  });
  CHECK(judged.is == verdict::failed);
  CHECK(contains(judged.seen, "failed with ThrottlingException and did not come again"));
  CHECK(run_rule("shard-end-lease-gone", [&](const std::string& line) {
          return action_of(line) == "processRecords" ? says_in("processRecords", beyond)(line)
                 : action_of(line) == "checkpoint"   ? lines{}
                                                     : lines{status_for(action_of(line))};
        }).seen.starts_with("the daemon refuses a checkpoint"));
}

TEST_CASE("legal pipelining is no fault: checkpoints right before the status, unanswered",
          "[check]") {
  const auto eager = [](const std::string& line) {
    if (action_of(line) != "processRecords") return obliging(line);
    return lines{null_checkpoint, null_checkpoint, status_for("processRecords")};
  };
  for (const char* name : {"one-status", "nothing-between", "checkpoint-rises",
                           "checkpoint-not-beyond", "shard-end"}) {
    CAPTURE(name);
    CHECK(run_rule(name, eager).is == verdict::passed);
  }
}

TEST_CASE(
    "several checkpoints may be asked for before the first answer says that the lease is gone",
    "[check]") {
  const auto asks = [](bool learns) {
    return [learns, is_gone = false](const std::string& line) mutable {
      is_gone = is_gone || contains(line, "ShutdownException");
      const std::string action = action_of(line);
      if (action == "checkpoint") return lines{};
      if (is_gone && learns) return lines{status_for(action)};
      return lines{null_checkpoint, null_checkpoint, status_for(action)};
    };
  };
  const std::string name = "no-checkpoint-after-lease-is-gone";
  const auto learned = run_rule(name, asks(true));
  INFO(learned.seen);
  CHECK(learned.is == verdict::passed);
  CHECK(contains(run_rule(name, asks(false)).seen, "in an action after a ShutdownException came"));
}

TEST_CASE("a child that starts again gets what follows its position, wherever that is", "[check]") {
  for (const std::string last : {"101", "102", "103"}) {
    CAPTURE(last);
    const std::string at_last = R"("sequenceNumber":")" + last + '"';
    const auto lags = [=, is_again = false](const std::string& line) mutable {
      const std::string action = action_of(line);
      if (action == "initialize") is_again = contains(line, at_last);
      if (action == "processRecords" && contains(line, at_last)) {
        if (is_again) return lines{};
        return lines{R"({"action":"checkpoint",)" + at_last + R"(,"subSequenceNumber":0})",
                     status_for(action)};
      }
      if (action == "shutdownRequested") return lines{null_checkpoint, status_for(action)};
      return obliging(line);
    };
    CHECK(run_rule("resent-after-restart", lags).seen == "");
    CHECK(run_rule("hand-over", lags).seen == "");
  }
}

TEST_CASE("a refused checkpoint of a batch that comes twice is a hint when nothing is lost",
          "[check]") {
  const auto checkpoints_each = [](bool keeps_last) {
    return [=](const std::string& line) {
      lines said;
      for (const char* number : {"101", "103", "104", "106"}) {
        if (!keeps_last && std::string(number) == "106") continue;
        const std::string at = R"("sequenceNumber":")" + std::string(number) + '"';
        if (action_of(line) != "processRecords" || !contains(line, at)) continue;
        said.push_back(R"({"action":"checkpoint",)" + at + R"(,"subSequenceNumber":0})");
      }
      for (const std::string& answer : obliging(line)) said.push_back(answer);
      return said;
    };
  };
  const auto kept = run_rule("batch-twice", checkpoints_each(true));
  CHECK(kept.is == verdict::passed);
  CHECK(contains(kept.seen, "was refused: 103/0 was persisted"));
  CHECK(run_rule("batch-twice", checkpoints_each(false)).is == verdict::failed);
}

TEST_CASE("from a checkpoint that the child may repeat on it has --retry-limit for the step",
          "[check]") {
  const auto seen_after = [](const std::string& rule) {
    return run_rule(rule,
                    [](const std::string& line) {
                      return action_of(line) == "shardEnded" ? lines{null_checkpoint}
                                                             : obliging(line);
                    })
        .seen;
  };
  CHECK(contains(seen_after("shard-end-throttled"), "none within 30 s (--retry-limit)"));
  CHECK(contains(seen_after("shard-end-lease-gone"), "none within 10 s (--timeout)"));
}

TEST_CASE("a throttled position may come again later, but not never", "[check]") {
  const auto once = [](const std::string& later) {
    return [later, asked = 0](const std::string& line) mutable {
      if (action_of(line) == "shutdownRequested" && !later.empty()) {
        return lines{null_checkpoint, status_for("shutdownRequested")};
      }
      if (action_of(line) != "processRecords" || ++asked > 2) return obliging(line);
      const std::string number = asked == 1 ? "103" : later;
      if (number.empty()) return obliging(line);
      return lines{
          R"({"action":"checkpoint","sequenceNumber":")" + number + R"(","subSequenceNumber":0})",
          status_for("processRecords")};
    };
  };
  CHECK(run_rule("throttled-checkpoint", once("106")).is == verdict::passed);
  CHECK(run_rule("throttled-checkpoint", once("103")).is == verdict::passed);
  const auto judged = run_rule("throttled-checkpoint", once(""));
  CHECK(judged.is == verdict::failed);
  CHECK(contains(judged.seen, "\"103\""));
  CHECK(contains(judged.seen, "failed with ThrottlingException and did not come again"));
  // Only shutdownRequested can persist the position of the last batch.
  CHECK(contains(run_rule("throttled-checkpoint",
                          [](const std::string& line) {
                            if (action_of(line) != "processRecords") return obliging(line);
                            return lines{null_checkpoint, status_for("processRecords")};
                          })
                     .seen,
                 "no batch came after it, and it did not come again in shutdownRequested"));
}

TEST_CASE("a child that never does what a rule is about is not judged by it", "[check]") {
  for (const char* name : {"throttled-checkpoint", "lease-is-gone", "checkpoint-at-shutdown",
                           "throttled-at-shutdown", "checkpoint-rises", "poison-shard-end",
                           "stray-print", "shard-end-stored", "end-of-input-unanswered"}) {
    CAPTURE(name);
    CHECK(run_rule(name, obliging).is == verdict::skipped);
  }
}
