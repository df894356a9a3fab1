// SPDX-License-Identifier: Apache-2.0
// kclxx replay: what it finds in children and transcripts, and its options.
#include <algorithm>
#include <string>
#include <unistd.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "process/replayed.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

using namespace kclxx::test;

TEST_CASE("a child that answers is fine, and the summary counts", "[replay]") {
  replayed tool;
  const auto result = tool.run({tool.dialogue(5, shard_ended)}, {"checkpoint"});
  CHECK(result.status == 0);
  CHECK_THAT(result.out, Contains("shardId-000000000007"));
  CHECK_THAT(result.out, Contains("15 in 5 batches, 55 B of data"));
  CHECK_THAT(result.out, Contains("6 asked, 6 answered, 0 failed"));
  CHECK_THAT(result.out, Contains("after SHARD_END/0"));
  CHECK_THAT(result.out, Contains("\nok\n"));
}

TEST_CASE("each breach is named with the transcript's line and the child's", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  const auto [what, message] = GENERATE(table<std::string, std::string>({
      {"wrong status",
       "the status is for \"somethingElse\" instead of processRecords; the daemon "
       "ends the whole worker"},
      {"print", "the daemon skips this line: not JSON"},
      {"checkpoint at 999", "refuses this checkpoint in processRecords: IllegalArgumentException"},
      {"20 MB", "the daemon skips this line: not JSON"},
  }));
  const auto result = tool.run({file}, {"2:" + what});
  CHECK(result.status == 1);
  CHECK_THAT(result.out, Contains("breach        " + file + ":3: "));
  CHECK_THAT(result.out, Contains(message));
  CHECK_THAT(result.out, Contains("child: "));
}

TEST_CASE("a transcript without a child is not compared with a child", "[replay][expect]") {
  replayed tool;
  const auto lines = tool.run({"--expect", tool.dialogue(1)}, {});
  CHECK(lines.status == 4);
  CHECK_THAT(lines.out, Contains("has only the daemon's lines"));
  const std::string transcript =
      R"({"kclxx_transcript":1,"shard":"s","started":"2026-01-01T00:00:00.000000Z",)"
      R"("command":[]})"
      "\n"
      R"({"at":0,"from":"daemon","line":{"action":"initialize","shardId":"s",)"
      R"("sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}})"
      "\n";
  const std::string file = tool.file("made.jsonl", transcript);
  const auto result = tool.run({"--expect", file}, {});
  CHECK(result.status == 4);
  CHECK_THAT(result.out, Contains(file + ":1: it was made without a child"));
  CHECK(tool.run({file}, {}).status == 0);
}

TEST_CASE("a checkpoint after the last status is read by nobody", "[replay]") {
  replayed tool;
  const auto result = tool.run({tool.dialogue(1)}, {"late"});
  CHECK(result.status == 1);
  CHECK_THAT(result.out, Contains(":3: nobody reads this line: it came after the last status"));
  CHECK_THAT(result.out, Contains("1 asked, 0 answered"));
}

TEST_CASE("a child that hangs is ended after the timeout", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  const auto result = tool.run({"--timeout", "0.2", file}, {"2:hang"});
  CHECK(result.status == 3);
  CHECK_THAT(result.out, Contains(file + ":3: no status for processRecords within 200 ms"));
  CHECK_THAT(result.out, Contains("3 in 1 batches"));
}

TEST_CASE("a child that dies or leaves failed, and how it ended is reported", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  const auto died = tool.run({file}, {"2:die"});
  CHECK(died.status == 3);
  CHECK_THAT(died.out, Contains(":3: processRecords: the child's output ended, signal 6"));
  const auto leaving = tool.run({file}, {"2:leave"});
  CHECK(leaving.status == 3);
  CHECK_THAT(leaving.out, Contains("the child's output ended, exit status 7"));
  const auto in_the_end = tool.run({file}, {"exit:9"});
  CHECK(in_the_end.status == 3);
  CHECK_THAT(in_the_end.out, Contains("the child left with exit status 9"));
}

TEST_CASE("a damaged transcript is played up to the damage, which is named", "[replay]") {
  replayed tool;
  const std::string good = initialize + "\n" + tool.batch(0) + "\n";
  const auto [line, message] = GENERATE(table<std::string, std::string>({
      {"oops\n", ":3: is not a line of the daemon"},
      {R"({"action":"processRecords")", ":3: is cut off"},
      {R"({"action":"processRecords","records":[{}],"millisBehindLatest":0})"
       "\n",
       ":3: the daemon's line: records[0].sequenceNumber is missing"},
      {initialize + "\n", ":3: a daemon sends no initialize here"},
  }));
  const auto result = tool.run({tool.file("damaged.jsonl", good + line)}, {"checkpoint"});
  CHECK(result.status == 4);
  CHECK_THAT(result.out, Contains("damaged.jsonl" + message));
  CHECK_THAT(result.out, Contains("3 in 1 batches"));
  CHECK_THAT(result.out, Contains("after 102/0"));
}

TEST_CASE("what is no transcript starts no child", "[replay]") {
  replayed tool;
  const auto none = tool.run({tool.file("empty.jsonl", "")}, {});
  CHECK(none.status == 4);
  CHECK_THAT(none.out, Contains("empty.jsonl:1: the file is empty"));
  const auto beginning = tool.run({tool.file("begin.jsonl", tool.batch(0) + "\n")}, {});
  CHECK(beginning.status == 4);
  CHECK_THAT(beginning.out, Contains("begin.jsonl:1: the dialogue does not begin with initialize"));
  CHECK(tool.run({"/there/is/no/such/file"}, {}).status == 5);
}

TEST_CASE("something after the ending is the transcript's mistake", "[replay]") {
  replayed tool;
  const auto result = tool.run({tool.dialogue(1, lease_lost + "\n" + tool.batch(5))}, {});
  CHECK(result.status == 4);
  CHECK_THAT(result.out, Contains(":4: a daemon sends no processRecords after leaseLost"));
}

TEST_CASE("several shards are played at once, and the worst of them is the exit status",
          "[replay]") {
  replayed tool;
  words files;
  for (int i = 0; i < 11; ++i) {
    std::string text = initialize + "\n";
    text.replace(text.find("07\""), 2, "1" + std::to_string(i));
    for (int n = 0; n <= i; ++n) text += tool.batch(n) + "\n";
    files.push_back(tool.file("shard" + std::to_string(i) + ".jsonl", text));
  }
  const auto fine = tool.run(files, {"checkpoint"});
  CHECK(fine.status == 0);
  CHECK_THAT(fine.out, Contains("total  11 shards\n  records       198 in 66 batches"));
  CHECK_THAT(fine.out, Contains("shardId-000000000010  ") && Contains("shardId-000000000014  "));
  const auto bad = tool.run(files, {"3:print", "5:leave"});
  CHECK(bad.status == 3);
  CHECK_THAT(bad.out, Contains("shard2.jsonl:4: the daemon skips this line"));
  CHECK_THAT(bad.out, Contains("shard4.jsonl:6: processRecords: the child's output ended"));
}

TEST_CASE("with --expect, replay names each difference with its line, if there is one",
          "[replay][expect]") {
  replayed tool;
  const std::string file = tool.file("both.jsonl", with_both_sides({"", "", ""}));
  CHECK(tool.run({"--expect", file}, {"checkpoint"}).status == 0);
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

TEST_CASE("a command line that cannot be understood is a usage error", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(1);
  CHECK(tool.run({"--faults", "trottle=0.1", file}, {}).status == 2);
  CHECK(tool.run({"--faults", "throttle=2", file}, {}).status == 2);
  CHECK(tool.run({"--faults", "", file}, {}).status == 2);
  CHECK(tool.run({"--expect", "--parked", file}, {}).status == 2);
  CHECK(tool.run({"--parked", "--effects", "{dir}/out", file}, {}).status == 2);
  CHECK(tool.run({}, {}).status == 2);
  for (const char* seconds : {"nan", "-1", "0", "inf", "soon"}) {
    CAPTURE(seconds);
    CHECK(tool.run({"--timeout", seconds, file}, {}).status == 2);
  }
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

TEST_CASE("a child that hangs is noticed while the source has nothing", "[replay]") {
  scripted_daemon tool(
      {KCLXX_TOOL, "replay", "--timeout", "0.2", "-", "--", KCLXX_SIMPLE_CHILD, "1:hang"});
  tool.initialize();
  tool.records({"one"});  // its input stays open
  CHECK(tool.wait_exit() == 3);
  CHECK_THAT(tool.rest(), Contains("-:2: no status for processRecords within"));
}

namespace {

/// Transcripts of one shard, and a child of which no two may run at the same time: it leaves its
/// beginning and the sequence numbers of its records in `out`.
struct lives : replayed {
  lives() {
    write("child.py", R"(import json, os, sys
os.mkdir('running')
out = []
for line in sys.stdin:
    message = json.loads(line)
    action = message['action']
    if action == 'initialize': out.append('from ' + message['sequenceNumber'])
    out += [record['sequenceNumber'] for record in message.get('records', [])]
    print(json.dumps({'action': 'status', 'responseFor': action}), flush=True)
open('out', 'a').write(' '.join(out) + '\n')
os.rmdir('running')
)");
  }

  /// With a batch of three records for each of the numbers, and first what its child has printed
  /// when it started. `started`: empty for a file that has only the daemon's lines.
  [[nodiscard]] std::string life(const std::string& name, const std::string& position,
                                 const std::vector<int>& batches,
                                 const std::string& started) const {
    std::string begin = initialize;
    begin.replace(begin.find("TRIM_HORIZON"), 12, position);
    words lines{begin};
    for (const int number : batches) lines.push_back(batch(number));
    lines.push_back(lease_lost);
    std::string text;
    if (!started.empty()) {
      text = R"({"kclxx_transcript":1,"shard":"shardId-000000000007","started":")" + started +
             "\",\"command\":[\"./child\"]}\n"
             R"({"at":0,"from":"child","text":"a banner"})"
             "\n";
    }
    for (const std::string& line : lines) {
      text += started.empty() ? line : R"({"at":1,"from":"daemon","line":)" + line + "}";
      text += "\n";
    }
    return file(name, text);
  }
};

}  // namespace

TEST_CASE("the transcripts of one shard are played in sequence, as they lie in the shard",
          "[replay]") {
  const lives place;
  const std::string first = place.life("b/3.jsonl", "TRIM_HORIZON", {0, 1}, "2026-11-21T07:00:03Z");
  const std::string again = place.life("b/2.jsonl", "TRIM_HORIZON", {0, 1}, "2026-11-21T07:00:04Z");
  // The clock of another machine is behind.
  const std::string overlapping = place.life("a/4.jsonl", "102", {1}, "2026-11-21T07:00:01Z");
  const std::string without_batch = place.life("a/1.jsonl", "112", {}, "2026-11-21T07:00:09Z");
  const std::string successor = place.life("a/0.jsonl", "112", {2, 3}, "");
  std::string other_shard = place.read("a/0.jsonl");
  other_shard.replace(other_shard.find("000000000007"), 12, "000000000008");
  const std::string other_file = place.file("a/8.jsonl", other_shard);
  words files{successor, without_batch, again, overlapping, first, other_file};
  const std::string expected =
      "from TRIM_HORIZON 100 101 102 110 111 112\n"
      "from TRIM_HORIZON 100 101 102 110 111 112\n"
      "from 102 110 111 112\n"
      "from 112 120 121 122 130 131 132\n"
      "from 112\n";
  const words child{KCLXX_PYTHON, "child.py"};

  SECTION("whatever their order on the command line") {
    files.pop_back();
    if (GENERATE(false, true)) std::reverse(files.begin(), files.end());
    const auto run = place.replay(files, child);
    CAPTURE(run.out, run.err);
    CHECK(run.status == 0);
    CHECK(place.read("out") == expected);
    CHECK_THAT(run.out, Contains("total  1 shard\n"));
  }
  SECTION("also from a pipe, of which nothing is lost") {
    open_pipe pipe;
    const std::string text = place.read("b/3.jsonl");
    const auto size = static_cast<ssize_t>(text.size());
    REQUIRE(::write(pipe.write_end(), text.data(), text.size()) == size);
    pipe.close_write_end();
    const auto run = place.kclxx({"replay", successor, without_batch, again, overlapping, "-", "--",
                                  KCLXX_PYTHON, "child.py"},
                                 {}, pipe.read_end());
    CAPTURE(run.out, run.err);
    CHECK(run.status == 0);
    CHECK(place.read("out") == expected);
  }
  SECTION("and one that fails does not keep back the next one") {
    const std::string bad = place.life("bad", "TRIM_HORIZON", {0}, "2026-11-21T07:00:00Z");
    place.write("bad", place.read("bad") + "nonsense\n");
    const auto run = place.replay({overlapping, bad, (place / "missing").string()}, child);
    CAPTURE(run.out, run.err);
    CHECK(run.status == 5);
    CHECK(place.read("out") == "from TRIM_HORIZON 100 101 102\nfrom 102 110 111 112\n");
    CHECK_THAT(run.out, Contains("missing cannot be read"));
  }
}
