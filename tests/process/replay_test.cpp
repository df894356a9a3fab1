// SPDX-License-Identifier: Apache-2.0
// kclxx replay: what it finds in children and transcripts.
#include <string>

#include "process/replayed.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using kclxx::test::Contains;

TEST_CASE("a child that answers is fine, and the summary counts", "[replay]") {
  replayed tool;
  const auto all = tool.run({tool.dialogue(5, shard_ended)}, {"checkpoint"});
  CHECK(all.status == 0);
  CHECK_THAT(all.out, Contains("shardId-000000000007"));
  CHECK_THAT(all.out, Contains("15 in 5 batches, 55 B of data"));
  CHECK_THAT(all.out, Contains("6 asked, 6 answered, 0 failed"));
  CHECK_THAT(all.out, Contains("after SHARD_END/0"));
  CHECK_THAT(all.out, Contains("\nok\n"));
}

TEST_CASE("each breach is named with the transcript's line and the child's", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  struct breach {
    std::string what;
    std::string message;
  };
  const auto sample = GENERATE_COPY(values<breach>({
      {"wrong status",
       "the status is for \"somethingElse\" instead of processRecords; the daemon "
       "ends the whole worker"},
      {"unknown field", "the daemon knows no field 'note' in status"},
      {"print", "the daemon skips this line: not JSON"},
      {"null", "the daemon fails on a null message"},
      {"daemon's line", "only the daemon sends leaseLost"},
      {"checkpoint at 999", "refuses this checkpoint in processRecords: IllegalArgumentException"},
      {"20 MB", "the daemon skips this line: not JSON"},
  }));
  const auto all = tool.run({file}, {"2:" + sample.what});
  CHECK(all.status == 1);
  CHECK_THAT(all.out, Contains("breach        " + file + ":3: "));
  CHECK_THAT(all.out, Contains(sample.message));
  CHECK_THAT(all.out, Contains("child: "));
}

TEST_CASE("what was made without a child is not compared with one", "[replay]") {
  replayed tool;
  const std::string made =
      R"({"kclxx_transcript":1,"shard":"s","started":"2026-01-01T00:00:00.000000Z",)"
      R"("command":[]})"
      "\n"
      R"({"at":0,"from":"daemon","line":{"action":"initialize","shardId":"s",)"
      R"("sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0}})"
      "\n";
  const std::string file = tool.file("made.jsonl", made);
  const auto all = tool.run({"--expect", file}, {});
  CHECK(all.status == 4);
  CHECK_THAT(all.out, Contains(file + ":1: it was made without a child"));
  CHECK(tool.run({file}, {}).status == 0);
}

TEST_CASE("a checkpoint after the last status is read by nobody", "[replay]") {
  replayed tool;
  const auto all = tool.run({tool.dialogue(1)}, {"late"});
  CHECK(all.status == 1);
  CHECK_THAT(all.out, Contains(":3: nobody reads this line: it came after the last status"));
  CHECK_THAT(all.out, Contains("1 asked, 0 answered"));
}

TEST_CASE("a child that hangs is ended after the timeout", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  const auto all = tool.run({"--timeout", "0.2", file}, {"2:hang"});
  CHECK(all.status == 3);
  CHECK_THAT(all.out, Contains(file + ":3: no status for processRecords within 200 ms"));
  CHECK_THAT(all.out, Contains("3 in 1 batches"));
}

TEST_CASE("a child that dies or leaves failed, and how it ended is reported", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  const auto died = tool.run({file}, {"2:die"});
  CHECK(died.status == 3);
  CHECK_THAT(died.out, Contains(":3: processRecords: the child's output ended, signal 6"));
  const auto left = tool.run({file}, {"2:leave"});
  CHECK(left.status == 3);
  CHECK_THAT(left.out, Contains("the child's output ended, exit status 7"));
  const auto in_the_end = tool.run({file}, {"exit:9"});
  CHECK(in_the_end.status == 3);
  CHECK_THAT(in_the_end.out, Contains("the child left with exit status 9"));
}

TEST_CASE("a damaged transcript is played up to the damage, which is named", "[replay]") {
  replayed tool;
  const std::string good = initialize + "\n" + tool.batch(0) + "\n";
  struct damage {
    std::string line;
    std::string message;
  };
  const auto sample = GENERATE(values<damage>({
      {"oops\n", ":3: is not a line of the daemon"},
      {R"({"action":"processRecords")", ":3: is cut off"},
      {R"({"action":"processRecords","records":[{}],"millisBehindLatest":0})"
       "\n",
       ":3: the daemon's line: records[0].sequenceNumber is missing"},
      {initialize + "\n", ":3: a daemon sends no initialize here"},
  }));
  const auto all = tool.run({tool.file("damaged.jsonl", good + sample.line)}, {"checkpoint"});
  CHECK(all.status == 4);
  CHECK_THAT(all.out, Contains("damaged.jsonl" + sample.message));
  CHECK_THAT(all.out, Contains("3 in 1 batches"));
  CHECK_THAT(all.out, Contains("after 102/0"));
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
  const auto all = tool.run({tool.dialogue(1, lease_lost + "\n" + tool.batch(5))}, {});
  CHECK(all.status == 4);
  CHECK_THAT(all.out, Contains(":4: a daemon sends no processRecords after leaseLost"));
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
