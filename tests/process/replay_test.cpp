// SPDX-License-Identifier: Apache-2.0
// kclxx replay, as its users start it.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/child_process.hpp"
#include "support/catch.hpp"
#include "support/scripted_daemon.hpp"

using Catch::Contains;
using kclxx::cli::child_process;
using words = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

const std::string initialize = R"({"action":"initialize","shardId":"shardId-000000000007",)"
                               R"("sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0})";
const std::string lease_lost = R"({"action":"leaseLost"})";
const std::string shard_ended = R"({"action":"shardEnded"})";

struct result {
  int status = 0;
  std::string out;
};

std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  ssize_t n = 0;
  while ((n = ::read(fd, piece, sizeof piece)) > 0) text.append(piece, static_cast<std::size_t>(n));
  return text;
}

/// Transcripts in a directory of their own, and the tool over them.
class replayed {
 public:
  replayed() { fs::create_directories(directory_); }
  ~replayed() { fs::remove_all(directory_); }
  replayed(const replayed&) = delete;
  replayed& operator=(const replayed&) = delete;

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  /// Only the daemon's lines: initialize, so many batches of three records, and the ending.
  std::string dialogue(int batches, const std::string& ending = lease_lost) {
    std::string text = initialize + "\n";
    for (int i = 0; i < batches; ++i) text += batch(i) + "\n";
    if (!ending.empty()) text += ending + "\n";
    return file("dialogue.jsonl", text);
  }
  static std::string batch(int number) {
    return kclxx::test::records_line({"one", "two", "three"},
                                     static_cast<std::uint64_t>(number) * 10 + 100);
  }

  static result run(const words& arguments, const words& child) {
    words command{KCLXX_TOOL, "replay"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--", KCLXX_SIMPLE_CHILD});
    command.insert(command.end(), child.begin(), child.end());
    child_process tool(command);
    tool.input.close();
    result all;
    all.out = read_all(tool.output.get());
    all.status = tool.wait().status;
    INFO(all.out);
    return all;
  }

 private:
  fs::path directory_ =
      fs::temp_directory_path() / ("kclxx_replay_test_" + std::to_string(::getpid()));
};

/// A transcript with both sides: each batch with a checkpoint at its end, answered so.
std::string with_both_sides(const words& errors, int pause_milliseconds = 0) {
  std::string text = R"({"kclxx_transcript":1,"shard":"shardId-000000000007",)"
                     R"("started":"2026-11-21T07:00:00.123456Z","command":["./child"]})"
                     "\n";
  long at = 0;
  const auto add = [&](const std::string& from, const std::string& line) {
    text +=
        R"({"at":)" + std::to_string(++at) + R"(,"from":")" + from + R"(","line":)" + line + "}\n";
  };
  const auto status = [](const std::string& action) {
    return R"({"action":"status","responseFor":")" + action + R"("})";
  };
  add("daemon", initialize);
  add("child", status("initialize"));
  int number = 0;
  for (const std::string& error : errors) {
    at += pause_milliseconds * 1000L;
    add("daemon", replayed::batch(number++));
    const auto exchange = [&](const std::string& how) {
      add("child", R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})");
      add("daemon",
          R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null,"error":)" +
              how + "}");
    };
    if (!error.empty()) exchange('"' + error + '"');
    exchange("null");
    add("child", status("processRecords"));
  }
  text += R"({"at":)" + std::to_string(++at) + R"(,"event":"end_of_input"})" + "\n";
  text += R"({"at":)" + std::to_string(++at) + R"(,"event":"exit","status":0})" + "\n";
  return text;
}

}  // namespace

TEST_CASE("a child that answers is fine, and the summary counts", "[replay]") {
  replayed tool;
  const auto all = tool.run({tool.dialogue(5, shard_ended)}, {"checkpoint"});
  CHECK(all.status == 0);
  CHECK_THAT(all.out, Contains("shardId-000000000007"));
  CHECK_THAT(all.out, Contains("15 in 5 batches, 55 B of data"));
  CHECK_THAT(all.out, Contains("6 asked, 6 answered, 0 failed"));
  CHECK_THAT(all.out, Contains("behind SHARD_END/0"));
  CHECK_THAT(all.out, Contains("\nfine\n"));
}

TEST_CASE("each breach is named with the transcript's line and the child's", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(3);
  struct breach {
    std::string what;
    std::string message;
  };
  const auto one = GENERATE_COPY(values<breach>({
      {"wrong status",
       "the status is for 'somethingElse' instead of processRecords; the daemon "
       "ends the whole worker"},
      {"unknown field", "the daemon knows no field 'note' in status"},
      {"print", "the daemon skips this line: not JSON"},
      {"null", "the daemon fails on a null message"},
      {"daemon's line", "only the daemon sends leaseLost"},
      {"checkpoint at 999", "refuses this checkpoint in processRecords: IllegalArgumentException"},
      {"20 MB", "the daemon skips this line: not JSON"},
  }));
  const auto all = tool.run({file}, {"2:" + one.what});
  CHECK(all.status == 1);
  CHECK_THAT(all.out, Contains("breach        " + file + ":3: "));
  CHECK_THAT(all.out, Contains(one.message));
  CHECK_THAT(all.out, Contains("child: "));
}

TEST_CASE("a checkpoint behind the last status is read by nobody", "[replay]") {
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
  CHECK_THAT(all.out, Contains(file + ":3: no status for processRecords within 0.200 s"));
  CHECK_THAT(all.out, Contains("3 in 1 batches"));
}

TEST_CASE("a child that dies or leaves failed, and how it ended is said", "[replay]") {
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

TEST_CASE("a child that answers without having read its line breaks the dialogue", "[replay]") {
  replayed tool;
  const std::string large = kclxx::test::records_line({std::string(5'000'000, 'x')}, 900);
  const std::string file = tool.file(
      "large.jsonl", initialize + "\n" + tool.batch(1) + "\n" + large + "\n" + lease_lost + "\n");
  const auto all = tool.run({file}, {"1:close input"});
  CHECK(all.status != 0);
}

TEST_CASE("20 MB go out while 20 MB come in", "[replay]") {
  replayed tool;
  const std::string large = kclxx::test::records_line({std::string(20'000'000, 'x')}, 900);
  const std::string file =
      tool.file("large.jsonl", initialize + "\n" + large + "\n" + large + "\n" + lease_lost + "\n");
  const auto all = tool.run({file}, {"20 MB"});
  CHECK(all.status == 1);  // the daemon skips such a line
  CHECK_THAT(all.out, Contains("2 in 2 batches, 40.0 MB of data"));
}

TEST_CASE("a damaged transcript is played up to the damage, which is named", "[replay]") {
  replayed tool;
  const std::string good = initialize + "\n" + tool.batch(0) + "\n";
  struct damage {
    std::string line;
    std::string message;
  };
  const auto one = GENERATE(values<damage>({
      {"oops\n", ":3: is not a line of the daemon"},
      {R"({"action":"processRecords")", ":3: is cut off"},
      {R"({"action":"processRecords","records":[{}],"millisBehindLatest":0})"
       "\n",
       ":3: the daemon's line: records[0].sequenceNumber is empty"},
      {initialize + "\n", ":3: a daemon sends no initialize here"},
  }));
  const auto all = tool.run({tool.file("damaged.jsonl", good + one.line)}, {"checkpoint"});
  CHECK(all.status == 4);
  CHECK_THAT(all.out, Contains("damaged.jsonl" + one.message));
  CHECK_THAT(all.out, Contains("3 in 1 batches"));
  CHECK_THAT(all.out, Contains("behind 102/0"));
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

TEST_CASE("something behind the ending is the transcript's mistake", "[replay]") {
  replayed tool;
  const auto all = tool.run({tool.dialogue(1, lease_lost + "\n" + tool.batch(5))}, {});
  CHECK(all.status == 4);
  CHECK_THAT(all.out, Contains(":4: a daemon sends no processRecords behind leaseLost"));
}

TEST_CASE("several shards are played at once, and the worst of them is the exit status",
          "[replay]") {
  replayed tool;
  words files;
  for (int i = 0; i < 5; ++i) {
    std::string text = initialize + "\n";
    text.replace(text.find("07\""), 2, "1" + std::to_string(i));
    for (int n = 0; n <= i; ++n) text += tool.batch(n) + "\n";
    files.push_back(tool.file("shard" + std::to_string(i) + ".jsonl", text));
  }
  const auto fine = tool.run(files, {"checkpoint"});
  CHECK(fine.status == 0);
  CHECK_THAT(fine.out, Contains("total  5 shards\n  records       45 in 15 batches"));
  CHECK_THAT(fine.out, Contains("shardId-000000000010  ") && Contains("shardId-000000000014  "));
  words two_at_a_time = files;
  two_at_a_time.insert(two_at_a_time.begin(), {"--parallel", "2"});
  const auto bad = tool.run(two_at_a_time, {"3:print", "5:leave"});
  CHECK(bad.status == 3);
  CHECK_THAT(bad.out, Contains("shard2.jsonl:4: the daemon skips this line"));
  CHECK_THAT(bad.out, Contains("shard4.jsonl:6: processRecords: the child's output ended"));
}

TEST_CASE("--expect is content with a child that does what was recorded", "[replay][expect]") {
  replayed tool;
  const std::string file = tool.file("both.jsonl", with_both_sides({"", "", ""}));
  CHECK(tool.run({"--expect", file}, {"checkpoint"}).status == 0);
  CHECK(tool.run({"--expect-final", file}, {"3:checkpoint"}).status == 0);
}

TEST_CASE("--expect names each difference with its line", "[replay][expect]") {
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
  const auto last = tool.run({"--expect-final", file}, {"2:checkpoint"});
  CHECK(last.status == 1);
  CHECK_THAT(last.out, Contains("recorded was the final position 122/0, but this child reached "
                                "112/0"));
}

TEST_CASE("--expect needs a recorded child", "[replay][expect]") {
  replayed tool;
  const auto all = tool.run({"--expect", tool.dialogue(1)}, {});
  CHECK(all.status == 4);
  CHECK_THAT(all.out, Contains("has only the daemon's lines"));
}

TEST_CASE("a checkpoint fails where the recorded one did, or not with the model alone",
          "[replay]") {
  replayed tool;
  const std::string file =
      tool.file("both.jsonl", with_both_sides({"", "ThrottlingException", ""}));
  const auto recorded = tool.run({"--expect", file}, {"checkpoint"});
  CHECK(recorded.status == 0);
  CHECK_THAT(recorded.out, Contains("4 asked, 4 answered, 1 failed"));
  const auto model = tool.run({"--answers", "model", file}, {"checkpoint"});
  CHECK_THAT(model.out, Contains("3 asked, 3 answered, 0 failed"));
  // A child that checkpoints elsewhere gets the model's answers there.
  const auto elsewhere = tool.run({file}, {"2:checkpoint at 111"});
  CHECK_THAT(elsewhere.out, Contains("1 asked, 1 answered, 0 failed"));
}

TEST_CASE("--pace recorded waits as long as the daemon did", "[replay]") {
  replayed tool;
  const std::string file = tool.file("both.jsonl", with_both_sides({"", ""}, 150));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(tool.run({"--pace", "recorded", file}, {"checkpoint"}).status == 0);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(300));
  CHECK(tool.run({"--pace", "recorded", tool.dialogue(1)}, {}).status == 4);  // it has no times
}

TEST_CASE("faults are the same with the same seed, and others with another", "[replay][faults]") {
  replayed tool;
  const std::string file = tool.dialogue(60);
  const auto with = [&](const std::string& faults) {
    const auto all = tool.run({"--faults", faults, file}, {"checkpoint"});
    CHECK(all.status == 0);
    const std::size_t at = all.out.find("checkpoints");
    return all.out.substr(at, all.out.find('\n', at) - at);
  };
  const std::string first = with("throttle=0.3,dependency=0.2,unknown-action=0.1,seed=5");
  CHECK(first == with("throttle=0.3,dependency=0.2,unknown-action=0.1,seed=5"));
  CHECK(first != with("throttle=0.3,dependency=0.2,unknown-action=0.1,seed=6"));
  CHECK_THAT(first, !Contains(" 0 failed"));
}

TEST_CASE("a fault at a batch happens there", "[replay][faults]") {
  replayed tool;
  const std::string file = tool.dialogue(6);
  const auto with = [&](const std::string& faults, const words& child = {"checkpoint once"}) {
    const auto all = tool.run({"--faults", faults, file}, child);
    INFO(all.out);
    CHECK(all.status == 0);
    return all.out;
  };
  CHECK_THAT(with("shutdown-at=3"), Contains("6 in 2 batches") && Contains("behind 112/0"));
  CHECK_THAT(with("shutdown-at=record:9"), Contains("6 in 2 batches"));
  // The third batch's checkpoint meets a lost lease.
  CHECK_THAT(with("lease-lost-at=3"),
             Contains("9 in 3 batches") && Contains("1 failed") && Contains("behind 112/0"));
  CHECK_THAT(with("kill-at=4"), Contains("9 in 3 batches") && Contains("behind 122/0"));
  CHECK_THAT(with("end-of-input-at=4", {}), Contains("9 in 3 batches"));
  CHECK_THAT(with("kill-at=50"), Contains("kill-at=50 was not reached: 6 batches were sent"));
}

TEST_CASE("a command line that cannot be understood is a usage error", "[replay]") {
  replayed tool;
  const std::string file = tool.dialogue(1);
  CHECK(tool.run({"--faults", "trottle=0.1", file}, {}).status == 2);
  CHECK(tool.run({"--faults", "throttle=2", file}, {}).status == 2);
  CHECK(tool.run({"--expect", "--expect-final", file}, {}).status == 2);
  CHECK(tool.run({"--pace", "slow", file}, {}).status == 2);
  CHECK(tool.run({}, {}).status == 2);
}

TEST_CASE("--json has the same as the text", "[replay]") {
  replayed tool;
  const auto all = tool.run({"--json", tool.dialogue(2)}, {"checkpoint", "2:print"});
  CHECK(all.status == 1);
  CHECK_THAT(all.out, Contains(R"("status": 1)") && Contains(R"("records": 6)") &&
                          Contains(R"("sequenceNumber": "112")") &&
                          Contains(R"("child": "this is no JSON")"));
}

namespace {

/// Empty when each tag is closed in its order, else what is wrong.
std::string unbalanced(const std::string& page) {
  words open;
  std::size_t at = page.find("<html");
  for (at = page.find('<', at); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag without its end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
    } else {
      if (open.empty() || open.back() != tag.substr(1)) return "<" + tag + "> closes nothing";
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back() + " is open";
}

}  // namespace

TEST_CASE("the report is one well-formed page that needs nothing from anywhere",
          "[replay][report]") {
  replayed tool;
  const std::string page_file = tool.file("report.html", "");
  const std::string fine = tool.dialogue(4, shard_ended);
  const std::string both =
      tool.file("both.jsonl", with_both_sides({"", "ThrottlingException", ""}));
  const auto all = tool.run({"--report", page_file, fine, both}, {"checkpoint", "2:print"});
  CHECK(all.status == 1);
  std::ifstream in(page_file);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  CHECK(unbalanced(page) == "");
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import", "<script"}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == std::string::npos);
  }
  CHECK(page.find("nan") == std::string::npos);
  CHECK(page.find("inf") == std::string::npos);
  for (const char* title : {"Dialogue:", "Batch latency:", "Lag:", "Position:", "checkpointed",
                            "this is no JSON", "2 shards"}) {
    CHECK_THAT(page, Contains(title));
  }
  CHECK(tool.run({"--report", "/no/such/directory/x.html", fine}, {}).status == 5);
}

TEST_CASE("a report of nothing is a page, too", "[replay][report]") {
  replayed tool;
  const std::string page_file = tool.file("report.html", "");
  CHECK(tool.run({"--report", page_file, tool.file("<&>.jsonl", "oops\n")}, {}).status == 4);
  std::ifstream in(page_file);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  CHECK(unbalanced(page) == "");
  CHECK_THAT(page, Contains("&lt;&amp;&gt;.jsonl"));
}
