// SPDX-License-Identifier: Apache-2.0
// kclxx feed: the lines of stdin become records of shards, whose children are played the daemon.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <regex>
#include <string>
#include <unistd.h>
#include <vector>

#include "io/descriptor.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/eventually.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;
using words = std::vector<std::string>;

namespace {

/// Appends what it gets to OUT, after its shard, and checkpoints after each batch; with
/// `die_at` it leaves at that record, without a checkpoint of the batch, as long as there is no
/// file `died`. With `never` it asks for no checkpoint.
const std::string child = R"(import base64, json, os, sys
how = sys.argv[1] if len(sys.argv) > 1 else ''
shard = None
def checkpoint(sequence):
    if how == 'never': return
    print(json.dumps({'action': 'checkpoint', 'sequenceNumber': sequence, 'subSequenceNumber': 0 if sequence else None}), flush=True)
    assert json.loads(sys.stdin.readline())['error'] in (None, 'KinesisClientLibDependencyException')
for line in sys.stdin:
    message = json.loads(line)
    action = message['action']
    if action == 'initialize':
        shard = message['shardId']
        print(shard, 'begins at', message['sequenceNumber'], file=sys.stderr)
    if action == 'processRecords':
        data = [base64.b64decode(one['data']) for one in message['records']]
        if how and how.encode() in data and (sys.argv[2:] or not os.path.exists('died')):
            open('died', 'w').close()
            os._exit(9)
        with open('out', 'ab') as out:
            for payload, record in zip(data, message['records']):
                out.write(shard.split('-')[1][-1:].encode() + b' ' + record['partitionKey'].encode() + b' ' + payload + b'\n')
        if message['records']: checkpoint(message['records'][-1]['sequenceNumber'])
    if action == 'shutdownRequested': checkpoint(None)
    print(json.dumps({'action': 'status', 'responseFor': action}), flush=True)
)";

struct feed_box : sandbox {
  feed_box() { write("child.py", child); }

  /// With this input, to its end.
  [[nodiscard]] forked_result feed(const std::string& input, words arguments, const words& how = {},
                                   const char* child = "child.py") const {
    write("input", input);
    const kclxx::io::descriptor file(::open((*this / "input").c_str(), O_RDONLY | O_CLOEXEC));
    return kclxx(command(std::move(arguments), how, child), {}, file.get());
  }
  /// With this input, which stays open, and SIGTERM once the line "1" was delivered.
  [[nodiscard]] forked_result feed_and_stop(const std::string& input,
                                            const words& arguments) const {
    return feed_until([this] { return read("out") == "0 1 1\n"; }, input, command(arguments),
                      [](pid_t tool) { ::kill(tool, SIGTERM); });
  }
  /// With this input, which stays open. At the moment `act` is called with the process of feed.
  [[nodiscard]] forked_result feed_until(const std::function<bool()>& moment,
                                         const std::string& input, words command,
                                         const std::function<void(pid_t)>& act) const {
    const open_pipe pipe;
    command.insert(command.begin(), KCLXX_TOOL);
    forked_copy tool = start(command, {}, pipe.read_end());
    const auto size = static_cast<ssize_t>(input.size());
    REQUIRE(::write(pipe.write_end(), input.data(), input.size()) == size);
    CHECK(eventually(moment));
    act(tool.pid());
    return tool.result();
  }
  static words command(words arguments, const words& how = {}, const char* child = "child.py") {
    arguments.insert(arguments.begin(), "feed");
    arguments.insert(arguments.end(), {"--", KCLXX_PYTHON, child});
    arguments.insert(arguments.end(), how.begin(), how.end());
    return arguments;
  }
};

/// The name of the only shard, with which the last lines begin.
std::string shard_in(const std::string& out) { return out.substr(0, out.find(' ')); }

/// The line of the only shard, after its name.
std::string figures_in(const std::string& out) {
  return std::regex_replace(out, std::regex("^shardId-000000000000-[0-9a-f]{12}  "), "");
}

}  // namespace

TEST_CASE("each line is a record, whatever its bytes, with the number of its line as its key",
          "[feed]") {
  const feed_box box;
  const auto result = box.feed("a\n\n\xff\xfe\r\nlast", {});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(box.read("out") == "0 1 a\n0 2 \n0 3 \xff\xfe\r\n0 4 last\n");
  CHECK(figures_in(result.out) == "4 put, 4 delivered, 4 covered\n");
}

TEST_CASE("lines of one key go to one shard, and each shard is stated, also one without a line",
          "[feed]") {
  const feed_box box;
  const auto before =
      box.feed("a,1\nb,2\na,3\nno separator\n,5\n", {"--shards", "3", "--key", ","});
  CAPTURE(before.out, before.err);
  CHECK(before.status == 0);
  const std::string out = box.read("out");
  const std::string of_a = out.substr(out.find(" a a,1") - 1, 1);
  CHECK(contains(out, of_a + " a a,1\n"));
  CHECK(contains(out, of_a + " a a,3\n"));
  CHECK(contains(out, " no separator no separator\n"));
  CHECK(contains(out, " - ,5\n"));
  CHECK(count(before.out, " delivered, ") == 3);
  const auto none = box.feed("", {"--shards", "3"});
  CHECK(none.status == 0);
  CHECK(count(none.out, "  0 put, 0 delivered, 0 covered\n") == 3);

  const auto matched = box.feed("id=7 x\nid=\xC3\xA9\xFF x\n", {"--key", "id=([^ ]+)"});
  CHECK(matched.status == 0);
  CHECK(box.read("out").ends_with("0 7 id=7 x\n0 \xC3\xA9\xEF\xBF\xBD id=\xC3\xA9\xFF x\n"));
  CHECK(box.feed("", {"--key", "("}).status == 2);
  CHECK(box.feed("", {"--key", "(?:a)"}).status == 2);
}

TEST_CASE("two runs are two streams unless a state says otherwise", "[feed]") {
  const feed_box box;
  const auto names_of = [&](const words& options) {
    const auto run = box.feed("1\n2\n", options);
    CHECK(run.status == 0);
    std::vector<std::string> names;
    for (std::istringstream lines(run.out); !lines.eof();) {
      std::string line;
      if (std::getline(lines, line)) names.push_back(shard_in(line));
    }
    return names;
  };
  const auto first = names_of({"--shards", "2"});
  const auto second = names_of({"--shards", "2"});
  REQUIRE(first.size() == 2);
  REQUIRE(second.size() == 2);
  CHECK(first[0] != first[1]);
  CHECK(std::find_first_of(first.begin(), first.end(), second.begin(), second.end()) ==
        first.end());
  // A shard of Kinesis has a name like this.
  const std::regex name("shardId-00000000000[01]-[0-9a-f]{12}");
  for (const auto& shard : first) CHECK(std::regex_match(shard, name));

  const auto kept = names_of({"--state", "state"});
  CHECK(names_of({"--state", "state"}) == kept);
  CHECK(names_of({"--state", "another"}) != kept);
}

TEST_CASE("with a state a later run goes on after the positions that were covered", "[feed]") {
  const feed_box box;
  const auto first = box.feed("1\n2\n3\n", {"--state", "state", "--batch", "2"}, {"3"});
  CAPTURE(first.out, first.err);
  CHECK(first.status == 3);
  CHECK(figures_in(first.out) == "3 put, 2 delivered, 2 covered; 1 child died\n");
  CHECK_THAT(first.err, Contains("a child failed: no status for processRecords: its output ended, "
                                 "it left with exit status 9"));
  const auto second = box.feed("1\n2\n3\n4\n", {"--state", "state"});
  CAPTURE(second.err);
  CHECK(second.status == 0);
  CHECK(figures_in(second.out) == "2 put, 2 delivered, 2 covered; 2 were before\n");
  CHECK_THAT(second.err, Contains("begins at 2\n"));
  CHECK(box.read("out") == "0 1 1\n0 2 2\n0 3 3\n0 4 4\n");
  const auto divided = box.feed("1\n", {"--state", "state", "--shards", "2"});
  CHECK(divided.status == 2);
  CHECK_THAT(divided.err, Contains("state has positions of another division: shards 1"));
}

TEST_CASE("an input that does not begin with the lines that were covered is refused as a whole",
          "[feed]") {
  const feed_box box;
  const words division{"--shards", "2", "--key", " "};
  words with_state{"--state", "state"};
  with_state.insert(with_state.end(), division.begin(), division.end());
  // A key of the shard that does not have monday's lines.
  REQUIRE(box.feed("monday 0\na 0\nb 0\nc 0\nd 0\ne 0\nf 0\n", division).status == 0);
  const std::string spread = box.read("out");
  const bool is_second = contains(spread, "1 monday ");
  const std::size_t found = spread.find(is_second ? "\n0 " : "\n1 ");
  REQUIRE(found != std::string::npos);
  const std::string key = spread.substr(found + 3, 1);
  std::filesystem::remove(box / "out");

  const std::string begun = "monday 1\nmonday 2\nmonday 3\n";
  REQUIRE(box.feed(begun, with_state).status == 0);
  std::string delivered = box.read("out");
  const auto refusal = [&](const std::string& input) {
    const auto run = box.feed(input, with_state);
    CHECK(run.status == 1);
    CHECK(run.out.empty());
    CHECK(count(run.err, "\n") == 1);
    CHECK_THAT(run.err, Contains("stdin is another input than that of the state state: "));
    CHECK(box.read("out") == delivered);
    return run.err;
  };
  const std::string before = key + " 1\n" + key + " 2\n";
  CHECK_THAT(refusal("monday 2\nmonday 3\nmonday 4\n"), Contains("are other ones"));
  CHECK_THAT(refusal(before + "monday 2\nmonday 1\nmonday 3\n"), Contains("are other ones"));
  CHECK_THAT(refusal(before + "monday 1\nmonday 2\nmonday 3monday 4\n"),
             Contains("are other ones"));
  CHECK_THAT(refusal(before + "monday 1\nmonday 2monday 3\n"), Contains("it has only 2 of the 3"));
  CHECK_THAT(refusal(before), Contains("it has only 0 of the 3"));
  CHECK_THAT(refusal(""), Contains("it has only 0 of the 3"));
  // It may grow, in each shard, before these lines and after them.
  const auto grown = box.feed(before + begun + "monday 4\n", with_state);
  CAPTURE(grown.err);
  CHECK(grown.status == 0);
  delivered = box.read("out");
  CHECK(count(delivered, "\n") == 6);
  CHECK(count(delivered, " monday ") == 8);
}

TEST_CASE("a state that this version has not written is refused in one line", "[feed]") {
  const feed_box box;
  REQUIRE(box.feed("1\n", {"--state", "state"}).status == 0);
  const std::string sound = box.read("state/feed");
  const auto refusal = [&](const std::string& name, const std::string& text) {
    box.write("state/" + name, text);
    const auto run = box.feed("1\n", {"--state", "state"});
    CHECK(run.status == 5);
    CHECK(count(run.err, "\n") == 1);
    return run.err;
  };
  // What 0.2.0 wrote.
  const std::string version = "state/feed is not of this version of kclxx feed";
  CHECK_THAT(refusal("feed", "shards 1, key ''\n"), Contains(version));
  CHECK_THAT(refusal("feed", sound.substr(0, sound.size() / 2)), Contains(version));
  std::filesystem::remove(box / "state/feed");
  box.write("state/feed", sound);
  for (const std::string& name : box.list("state")) {
    if (name == "feed") continue;
    for (const char* text : {"nonsense\n", "1/0\n", "", "1\n", "1 \n", "x 1\n", "-1 1\n", "1 1",
                             "1 1 1\n", "99999999999999999999 1\n"}) {
      CHECK_THAT(refusal(name, text), Contains("state/" + name + " has no position"));
    }
  }
}

TEST_CASE("what is stored of a checkpoint is the number of lines, however the child has written it",
          "[feed]") {
  const feed_box box;
  // The child checkpoints these, one after another, in its only batch of three lines.
  box.write("odd.py", R"(import json, sys
for line in sys.stdin:
    action = json.loads(line)['action']
    if action == 'processRecords':
        for sequence, sub in json.loads(sys.argv[1]):
            print(json.dumps({'action': 'checkpoint', 'sequenceNumber': sequence, 'subSequenceNumber': sub}), flush=True)
            assert json.loads(sys.stdin.readline())['error'] is None
    print(json.dumps({'action': 'status', 'responseFor': action}), flush=True)
)");
  const auto [positions, covered] = GENERATE(
      table<std::string, int>({{R"([["000000000000000000000000000002", 0]])", 2},
                               {R"([["2", 7]])", 2},
                               {R"([["TRIM_HORIZON", 1]])", 0},
                               {R"([["LATEST", 1]])", 0},
                               {R"([["LATEST", 1], ["01", 0], ["1", 3], ["003", 0]])", 3}}));
  const auto first = box.feed("1\n2\n3\n", {"--state", "state"}, {positions}, "odd.py");
  CAPTURE(positions, first.err);
  CHECK(figures_in(first.out) == "3 put, 3 delivered, " + std::to_string(covered) + " covered\n");
  const auto second = box.feed("1\n2\n3\n", {"--state", "state"});
  CAPTURE(second.err);
  CHECK(second.status == 0);
  CHECK_THAT(second.out, Contains(std::to_string(3 - covered) + " put"));
}

TEST_CASE("a rate does not slow down what an earlier run has covered", "[feed]") {
  const feed_box box;
  std::string input;
  for (int i = 0; i < 1000; ++i) input += "line\n";
  REQUIRE(box.feed(input, {"--state", "state"}).status == 0);
  // It would take 16 minutes; ctest's limit is one.
  const auto again = box.feed(input + "1\n2\n", {"--state", "state", "--rate", "1"});
  CHECK(again.status == 0);
  CHECK(figures_in(again.out) == "2 put, 2 delivered, 2 covered; 1000 were before\n");
}

TEST_CASE("what a child did not cover comes again to the next one", "[feed]") {
  const feed_box box;
  const auto result = box.feed("1\n2\n3\n4\n5\n", {"--restart", "--batch", "2"}, {"4"});
  CAPTURE(result.out, result.err);
  CHECK(result.status == 0);
  CHECK(figures_in(result.out) == "5 put, 5 delivered, 5 covered; 1 child died\n");
  CHECK(box.read("out") == "0 1 1\n0 2 2\n0 3 3\n0 4 4\n0 5 5\n");
  CHECK(count(result.err, "a child failed") == 1);
  // One that always dies there ends it.
  const auto always = box.feed("1\n2\n", {"--restart", "--batch", "1"}, {"2", "always"});
  CAPTURE(always.err);
  CHECK(always.status == 3);
  CHECK(figures_in(always.out) == "2 put, 1 delivered, 1 covered; 3 children died\n");
  CHECK_THAT(always.err, Contains("3 children have failed at the same place"));
}

TEST_CASE("records that no checkpoint covers are a finding", "[feed]") {
  const feed_box box;
  const auto result = box.feed("1\n2\n", {}, {"never"});
  CHECK(result.status == 1);
  CHECK(figures_in(result.out) == "2 put, 2 delivered, 0 covered\n");
}

TEST_CASE("a line that no record can hold ends the input, and what came before is delivered",
          "[feed]") {
  const feed_box box;
  // The partition key counts, too.
  const words options{"--key", ","};
  const std::string most = "key," + std::string(10'485'760 - 7, 'x');
  CHECK(box.feed(most, options).status == 0);
  const std::string longer = GENERATE_COPY(most + "x", most + "x\nb\n", most + most + "\nb\n");
  const auto result = box.feed("a\n" + longer, options);
  CHECK(result.status == 4);
  CHECK(figures_in(result.out) == "1 put, 1 delivered, 1 covered\n");
  CHECK(
      result.err.ends_with("kclxx feed: stdin:2: the line is too long: with its partition key a "
                           "record has at most 10485760 bytes\n"));
}

TEST_CASE("a transcript of feed has both sides, and is played again", "[feed]") {
  const feed_box box;
  REQUIRE(box.feed("1\n2\n", {"--transcript", "made"}).status == 0);
  const auto files = box.list("made");
  REQUIRE(files.size() == 1);
  CHECK(files.front().starts_with("shardId-000000000000-"));
  const auto again =
      box.kclxx({"replay", "--expect", "made/" + files.front(), "--", KCLXX_PYTHON, "child.py"});
  CAPTURE(again.out);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("2 in 1 batches"));
  CHECK(box.feed("3\n", {"--transcript", "made"}).status == 0);
  CHECK(box.list("made").size() == 2);
}

#ifndef KCLXX_IS_SANITIZED  // LeakSanitizer needs /proc
TEST_CASE("without /proc feed and replay go on, and what needs it says so in one line", "[feed]") {
  const feed_box box;
  box.write("lines", "1\n2\n");
  const kclxx::io::descriptor lines(::open((box / "lines").c_str(), O_RDONLY | O_CLOEXEC));
  const auto fed = box.kclxx_without_proc(feed_box::command({}), lines.get());
  CAPTURE(fed.err);
  CHECK(fed.status == 0);
  CHECK(figures_in(fed.out) == "2 put, 2 delivered, 2 covered\n");
  REQUIRE(box.feed("1\n", {"--transcript", "made"}).status == 0);
  const auto played = box.kclxx_without_proc(
      {"replay", "made/" + box.list("made").front(), "--", KCLXX_PYTHON, "child.py"});
  CHECK(played.status == 0);
  const auto refused = box.kclxx_without_proc(feed_box::command({"--transcript", "made"}));
  CHECK(refused.status == 5);
  CHECK(refused.err ==
        "kclxx feed: --transcript starts this program, found by /proc, which is not mounted here: "
        "mount -t proc proc /proc\n");
}
#endif

TEST_CASE("a line is delivered when it comes, and the first signal asks for a shutdown", "[feed]") {
  const auto result = feed_box().feed_and_stop("1\n", {});
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(figures_in(result.out) == "1 put, 1 delivered, 1 covered\n");
}

TEST_CASE("after a signal, lines that were read and are not covered are told, with a status",
          "[feed]") {
  const words state = GENERATE(words{"--rate", "1"}, words{"--rate", "1", "--state", "kept"});
  const auto result = feed_box().feed_and_stop("1\n2\n3\n4", state);
  CAPTURE(result.err);
  CHECK(result.status == 1);
  CHECK(figures_in(result.out) == "4 put, 1 delivered, 1 covered\n");
  CHECK_THAT(result.err, Contains("kclxx feed: lines that were read and are not covered: 3\n"));
}

namespace {

/// Its child answers nothing but initialize, and leaves at the end of its input. It makes a file
/// `hangs` when it has a record; with `dies` it dies at a record whose key is not a.
struct hanging_box : feed_box {
  hanging_box() {
    write("hanging.py", R"(import json, os, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if message['action'] == 'initialize':
        print(json.dumps({'action': 'status', 'responseFor': 'initialize'}), flush=True)
    elif message['action'] == 'processRecords':
        if message['records'][0]['partitionKey'] == 'a': open('hangs', 'w').close()
        else:
            while not os.path.exists('hangs'): time.sleep(0.01)
            os._exit(9)
)");
  }

  /// With this input, which stays open. When its child hangs, `act` is called with its process.
  [[nodiscard]] forked_result feed_and(const std::string& input, const words& options,
                                       const std::function<void(pid_t)>& act) const {
    return feed_until([this] { return std::filesystem::exists(*this / "hangs"); }, input,
                      command(options, {}, "hanging.py"), act);
  }
};

}  // namespace

TEST_CASE("after one signal, records that are not covered within --grace are left, with a status",
          "[feed]") {
  const hanging_box box;
  const int signal = GENERATE(SIGTERM, SIGINT);
  const auto result = box.feed_and("a,1\n", {"--key", ",", "--grace", "0.1"},
                                   [&](pid_t tool) { ::kill(tool, signal); });
  CHECK(result.status == 1);
  CHECK(figures_in(result.out) == "1 put, 0 delivered, 0 covered\n");
  CHECK(result.err ==
        "kclxx feed: children have not shut down within 100 ms (--grace): what they have not "
        "covered is left\n");
}

TEST_CASE("when a child has died, the others have no longer than --grace, either", "[feed]") {
  const hanging_box box;
  // Keys of both shards.
  const auto result =
      box.feed_and("a,\nb,\nc,\nd,\ne,\nf,\n",
                   {"--key", ",", "--shards", "2", "--grace", "0.1", "--batch", "1"}, [](pid_t) {});
  CAPTURE(result.out);
  CHECK(result.status == 3);
  CHECK_THAT(result.err, Contains("a child failed: ") && Contains("within 100 ms (--grace)"));
}

TEST_CASE("a second signal ends the children's input at once", "[feed]") {
  const hanging_box box;
  const auto result = box.feed_and("a,1\n", {"--key", ",", "--grace", "1000"}, [](pid_t tool) {
    for (const int signal : {SIGINT, SIGTERM}) ::kill(tool, signal);
  });
  const bool is_second = result.status == 128 + SIGTERM || result.status == 128 + SIGINT;
  CHECK(is_second);
  CHECK(result.out.empty());
}

TEST_CASE("a child that cannot be started, and one that is not there, are status 5", "[feed]") {
  const feed_box box;
  const auto none = box.kclxx({"feed", "--", "/no/such/program"});
  CHECK(none.status == 5);
  CHECK_THAT(none.err, Contains("/no/such/program cannot be started"));
}
