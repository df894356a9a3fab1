// SPDX-License-Identifier: Apache-2.0
// kclxx feed: the lines of stdin become records of shards, whose children are played the daemon.
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "io/descriptor.hpp"
#include "support/catch.hpp"
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
        print('begins at', message['sequenceNumber'], file=sys.stderr)
    if action == 'processRecords':
        data = [base64.b64decode(one['data']) for one in message['records']]
        if how and how.encode() in data and (sys.argv[2:] or not os.path.exists('died')):
            open('died', 'w').close()
            os._exit(9)
        with open('out', 'ab') as out:
            for one, record in zip(data, message['records']):
                out.write(shard[-1:].encode() + b' ' + record['partitionKey'].encode() + b' ' + one + b'\n')
        if message['records']: checkpoint(message['records'][-1]['sequenceNumber'])
    if action == 'shutdownRequested': checkpoint(None)
    print(json.dumps({'action': 'status', 'responseFor': action}), flush=True)
)";

struct feed_box : sandbox {
  feed_box() { write("child.py", child); }

  /// With this input, to its end.
  [[nodiscard]] forked_result feed(const std::string& input, words arguments,
                                   const words& how = {}) const {
    write("input", input);
    const kclxx::io::descriptor file(::open((*this / "input").c_str(), O_RDONLY | O_CLOEXEC));
    return kclxx(command(std::move(arguments), how), {}, file.get());
  }
  static words command(words arguments, const words& how = {}) {
    arguments.insert(arguments.begin(), "feed");
    arguments.insert(arguments.end(), {"--", KCLXX_PYTHON, "child.py"});
    arguments.insert(arguments.end(), how.begin(), how.end());
    return arguments;
  }
};

std::string counts(const std::string& figures) { return "shardId-000000000000  " + figures + "\n"; }

}  // namespace

TEST_CASE("each line is a record, whatever its bytes, with the number of its line as its key",
          "[feed]") {
  const feed_box box;
  const auto all = box.feed("a\n\n\xff\xfe\r\nlast", {});
  CAPTURE(all.err);
  CHECK(all.status == 0);
  CHECK(box.read("out") == "0 1 a\n0 2 \n0 3 \xff\xfe\r\n0 4 last\n");
  CHECK(all.out == counts("4 put, 4 delivered, 4 covered"));
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

TEST_CASE("with a state a later run goes on after the positions that were covered", "[feed]") {
  const feed_box box;
  const auto first = box.feed("1\n2\n3\n", {"--state", "state", "--batch", "2"}, {"3"});
  CAPTURE(first.out, first.err);
  CHECK(first.status == 3);
  CHECK(first.out == counts("3 put, 2 delivered, 2 covered"));
  CHECK_THAT(first.err, Contains("a child failed: no status for processRecords: its output ended, "
                                 "it left with exit status 9"));
  const auto second = box.feed("1\n2\n3\n4\n", {"--state", "state"});
  CAPTURE(second.err);
  CHECK(second.status == 0);
  CHECK(second.out == counts("2 put, 2 delivered, 2 covered; 2 were before"));
  CHECK_THAT(second.err, Contains("begins at 2\n"));
  CHECK(box.read("out") == "0 1 1\n0 2 2\n0 3 3\n0 4 4\n");
  // Another input, or another division, is told.
  const auto shorter = box.feed("1\n", {"--state", "state"});
  CHECK(shorter.status == 1);
  CHECK_THAT(shorter.out, Contains("4 were before, but the input has only 1 of these"));
  CHECK(box.feed("1\n", {"--state", "state", "--shards", "2"}).status == 2);
  box.write("state/shardId-000000000000.position", "nonsense\n");
  CHECK(box.feed("1\n", {"--state", "state"}).status == 5);
}

TEST_CASE("what a child did not cover comes again to the next one", "[feed]") {
  const feed_box box;
  const auto all = box.feed("1\n2\n3\n4\n5\n", {"--restart", "--batch", "2"}, {"4"});
  CAPTURE(all.out, all.err);
  CHECK(all.status == 3);
  CHECK(all.out == counts("5 put, 5 delivered, 5 covered"));
  CHECK(box.read("out") == "0 1 1\n0 2 2\n0 3 3\n0 4 4\n0 5 5\n");
  CHECK(count(all.err, "a child failed") == 1);
  // One that always dies there ends it.
  const auto always = box.feed("1\n2\n", {"--restart", "--batch", "1"}, {"2", "always"});
  CAPTURE(always.err);
  CHECK(always.status == 3);
  CHECK(always.out == counts("2 put, 1 delivered, 1 covered"));
  CHECK_THAT(always.err, Contains("3 children have failed at the same place"));
}

TEST_CASE("what no checkpoint covers is a finding", "[feed]") {
  const feed_box box;
  const auto all = box.feed("1\n2\n", {}, {"never"});
  CHECK(all.status == 1);
  CHECK(all.out == counts("2 put, 2 delivered, 0 covered"));
}

TEST_CASE("a line that no record can hold ends the input, and what came before is delivered",
          "[feed]") {
  const feed_box box;
  const auto all = box.feed("a\n" + std::string(10'485'761, 'x') + "\nb\n", {});
  CHECK(all.status == 4);
  CHECK(all.out == counts("1 put, 1 delivered, 1 covered"));
  CHECK_THAT(all.err, Contains("stdin:2: the line has more than 10 MiB"));
  CHECK(box.feed(std::string(10'485'760, 'x'), {}).status == 0);
}

TEST_CASE("a transcript of feed has both sides, and is played again", "[feed]") {
  const feed_box box;
  REQUIRE(box.feed("1\n2\n", {"--transcript", "made"}).status == 0);
  const auto made = box.list("made");
  REQUIRE(made.size() == 1);
  CHECK(made.front().starts_with("shardId-000000000000."));
  const auto again =
      box.kclxx({"replay", "--expect", "made/" + made.front(), "--", KCLXX_PYTHON, "child.py"});
  CAPTURE(again.out);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("2 in 1 batches"));
  CHECK(box.feed("3\n", {"--transcript", "made"}).status == 0);
  CHECK(box.list("made").size() == 2);
}

TEST_CASE("a line is delivered when it comes, and the first signal asks for a shutdown", "[feed]") {
  const feed_box box;
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  const kclxx::io::descriptor from(pipe[0]);
  kclxx::io::descriptor to(pipe[1]);
  words command = feed_box::command({});
  command.insert(command.begin(), KCLXX_TOOL);
  forked_copy tool = box.start(command, {}, from.get());
  REQUIRE(::write(to.get(), "1\n2", 3) == 3);
  CHECK(eventually(
      [&] { return std::filesystem::exists(box / "out") && box.read("out") == "0 1 1\n"; }));
  ::kill(tool.pid(), SIGTERM);
  const auto all = tool.result();
  CAPTURE(all.err);
  CHECK(all.status == 0);
  CHECK(all.out == counts("1 put, 1 delivered, 1 covered"));
}

TEST_CASE("a child that cannot be started, and one that is not there, are status 5", "[feed]") {
  const feed_box box;
  const auto none = box.kclxx({"feed", "--", "/no/such/program"});
  CHECK(none.status == 5);
  CHECK_THAT(none.err, Contains("/no/such/program cannot be started"));
}
