// SPDX-License-Identifier: Apache-2.0
// kclxx replay: comparing, answers, faults.
#include <chrono>
#include <string>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "process/replayed.hpp"
#include "support/catch.hpp"
#include "tool/process/program.hpp"

using namespace kclxx::test;
using kclxx::test::Contains;

TEST_CASE("with --expect, replay is content with a child that does what was recorded",
          "[replay][expect]") {
  replayed tool;
  const std::string file = tool.file("both.jsonl", with_both_sides({"", "", ""}));
  CHECK(tool.run({"--expect", file}, {"checkpoint"}).status == 0);
}

TEST_CASE("with --expect, replay names each difference with its line", "[replay][expect]") {
  replayed tool;
  const std::string file = tool.file("both.jsonl", with_both_sides({"", "", ""}));
  const auto less = tool.run({"--expect", file}, {"1:checkpoint", "2:checkpoint at 111", "exit:4"});
  CHECK(less.status == 3);
  CHECK_THAT(less.out, Contains("difference    " + file +
                                ":9: recorded was checkpoint null, but the child wrote "
                                "checkpoint 111/0"));
  CHECK_THAT(less.out, Contains(":13: recorded was checkpoint null, but the child wrote status for "
                                "processRecords"));
  CHECK_THAT(less.out,
             Contains("recorded was exit status 0, but the child left with exit status 4"));
}

TEST_CASE("with --expect, what a child wrote after a carriage return is compared, too",
          "[replay][expect]") {
  replayed tool;
  std::string recorded = with_both_sides({""});
  const std::string line = R"("line":{"action":"checkpoint","sequenceNumber":null,)";
  const std::string text = R"("text":"50 %\r{\"action\":\"checkpoint\",\"sequenceNumber\":null,)";
  const std::string end = R"("subSequenceNumber":null})";
  recorded.replace(recorded.find(line), line.size() + end.size(),
                   text + R"(\"subSequenceNumber\":null}")");
  const std::string file = tool.file("both.jsonl", recorded);
  CHECK(tool.run({"--expect", file}, {"checkpoint"}).status == 0);
  CHECK(tool.run({"--expect", file}, {}).status == 1);
}

TEST_CASE("with --expect, replay needs a recorded child", "[replay][expect]") {
  replayed tool;
  const auto result = tool.run({"--expect", tool.dialogue(1)}, {});
  CHECK(result.status == 4);
  CHECK_THAT(result.out, Contains("has only the daemon's lines"));
}

TEST_CASE("a command line that cannot be understood is a usage error", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(1);
  CHECK(tool.run({"--faults", "trottle=0.1", file}, {}).status == 2);
  CHECK(tool.run({"--faults", "throttle=2", file}, {}).status == 2);
  CHECK(tool.run({"--faults", "", file}, {}).status == 2);
  CHECK(tool.run({"--expect", "--parked", file}, {}).status == 2);
  CHECK(tool.run({"--parked", "--effects", "{dir}/out", file}, {}).status == 2);
  CHECK(tool.run({}, {}).status == 2);
}

TEST_CASE("with --json, the summary has the same as the text", "[replay]") {
  replayed tool;
  const std::string file = tool.file("both.jsonl", with_both_sides({"", "ThrottlingException"}));
  const words child{"checkpoint", "2:print", "exit:4"};
  const auto text = tool.run({"--expect", file}, child);
  CHECK(text.status == 3);
  CHECK_THAT(text.out, Contains("shardId-000000000007  " + file + "\n"));
  CHECK_THAT(text.out,
             Contains("records       6 in 2 batches, 22 B of data in 1.11 kB of lines\n"));
  CHECK_THAT(text.out, Contains("checkpoints   3 asked, 3 answered, 1 failed\n"));
  CHECK_THAT(text.out, Contains("resumes       after 112/0\n"));
  CHECK_THAT(text.out, Contains(file + ":8: the daemon skips this line: not JSON\n") &&
                           Contains("child: this is no JSON\n"));
  CHECK_THAT(text.out, Contains(file + ":15: recorded was exit status 0, but the child left"));
  CHECK_THAT(text.out,
             Contains("child failed  " + file + ":8: the child left with exit status 4\n"));
  const auto report =
      nlohmann::ordered_json::parse(tool.run({"--json", "--expect", file}, child).out);
  nlohmann::ordered_json shard = report["shards"][0];
  CHECK(report["shards"].size() == 1);
  // Times differ from run to run.
  for (const auto& of : {report["total"], shard}) {
    const auto& callbacks = of["callback_microseconds"];
    CHECK(callbacks["p50"] > 0);
    CHECK(callbacks["p50"] <= callbacks["p99"]);
    CHECK(callbacks["p99"] <= callbacks["max"]);
    CHECK(of["seconds"].get<double>() * 1e6 >= callbacks["max"].get<double>());
  }
  for (const char* time : {"seconds", "callback_microseconds"}) shard.erase(time);
  const auto at = [](const char* line, const std::string& text) {
    return "{\"line\":" + std::string(line) + ",\"what\":\"" + text + "}";
  };
  const std::string exit = "the child left with exit status 4\"";
  CHECK(shard.dump() ==
        R"({"file":")" + file + R"(","status":3,"shard":"shardId-000000000007","records":6,)" +
            R"("batches":2,"data_bytes":22,"line_bytes":1109,"checkpoints":)" +
            R"({"asked":3,"answered":3,"failed":1},"successors":0,)" +
            R"("resume":{"sequenceNumber":"112","subSequenceNumber":0},"notes":[],)" +
            R"("breaches":{"count":1,"first":[)" +
            at("8", R"(the daemon skips this line: not JSON","child":"this is no JSON")") +
            R"(]},"differences":{"count":1,"first":[)" +
            at("15", "recorded was exit status 0, but " + exit) + R"(]},"child_failed":)" +
            at("8", exit) + R"(,"bad_transcript":null})");
}

TEST_CASE("a child that prints without end has not answered within the time limit", "[replay]") {
  replayed tool;
  const auto result = tool.run({"--timeout", "1", tool.dialogue(2)}, {"1:print without end"});
  CHECK(result.status == 3);
  CHECK_THAT(result.out, Contains("no status for processRecords within 1 s"));
}

TEST_CASE("a time that is not a number is refused", "[replay]") {
  replayed tool;
  for (const char* seconds : {"nan", "-1", "0", "inf", "soon"}) {
    CAPTURE(seconds);
    CHECK(tool.run({"--timeout", seconds, tool.dialogue(1)}, {}).status == 2);
  }
}

TEST_CASE("a child that hangs is noticed while the source has nothing", "[replay]") {
  using namespace std::chrono_literals;
  kclxx::tool::child_process tool(
      {KCLXX_TOOL, "replay", "--timeout", "0.2", "-", "--", KCLXX_SIMPLE_CHILD, "1:hang"});
  const std::string text = initialize + "\n" + replayed::batch(0) + "\n";
  REQUIRE(::write(tool.input.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  // Its input stays open.
  CHECK(tool.wait_until(std::chrono::steady_clock::now() + 60s) == kclxx::tool::child_exit{3, 0});
  CHECK_THAT(read_all(tool.output.get()), Contains("-:2: no status for processRecords within"));
}
