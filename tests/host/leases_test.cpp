// SPDX-License-Identifier: Apache-2.0
// `kclxx leases` from its command line, with an aws that does as if; e2e.leases has the real one.
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/descriptor.hpp"
#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

namespace {

std::string scan_of(const std::string& rows) { return "{\"Items\": [" + rows + "]}"; }

/// Its aws has a table, and no other one, and a stream, whose shards have the records 101, 102 and
/// 103 of 2026-01-01T00:00:00Z, a minute apart. The file `asked` has each command line, `updates`
/// what is written.
class aws_box : public sandbox {
 public:
  explicit aws_box(const std::string& rows,
                   const std::string& shards = R"({"ShardId": "shardId-1"})") {
    show(rows);
    write("shards", "{\"Shards\": [" + shards + "]}");
    program("bin/aws", R"(echo "$*" >> $HOME/asked
case $* in
*--table-name\ other* | *-CoordinatorState*)
  echo 'An error occurred (ResourceNotFoundException) when calling the Scan operation: no table' >&2
  exit 254 ;;
*dynamodb\ scan*) cat $HOME/table; if [ -e $HOME/next ]; then mv $HOME/next $HOME/table; fi ;;
*update-item*)
  if [ -e $HOME/updates ] && [ -e $HOME/fails_later ]; then exit 254; fi
  if [ -e $HOME/changed ]; then echo '(ConditionalCheckFailedException)' >&2; exit 254; fi
  echo "$*" >> $HOME/updates ;;
*list-shards*) cat $HOME/shards ;;
*get-shard-iterator*) echo '{"ShardIterator": "i"}' ;;
*get-records*) cat $HOME/records ;;
esac
)");
    write("records", R"({"Records": [
      {"SequenceNumber": "101", "ApproximateArrivalTimestamp": 1767225600.0},
      {"SequenceNumber": "102", "ApproximateArrivalTimestamp": "2026-01-01T00:01:00+00:00"},
      {"SequenceNumber": "103", "ApproximateArrivalTimestamp": 1767225720.0}],
      "MillisBehindLatest": 0})");
  }

  static std::string row(const std::string& shard, const std::string& checkpoint,
                         const std::string& counter = "7") {
    return R"({"leaseKey": {"S": ")" + shard + R"("}, "leaseOwner": {"S": "host-1"}, )" +
           R"("checkpoint": {"S": ")" + checkpoint +
           R"("}, "checkpointSubSequenceNumber": {"N": "3"}, "leaseCounter": {"N": ")" + counter +
           "\"}}";
  }
  void show(const std::string& rows, const std::string& file = "table") const {
    write(file, scan_of(rows));
  }
  [[nodiscard]] forked_result rewind(std::vector<std::string> options) const {
    options.insert(options.begin(),
                   {"leases", "my-app", "--interval", "0.05", "--stream", "clicks"});
    return kclxx(options);
  }
  [[nodiscard]] bool has_written() const { return std::filesystem::exists(*this / "updates"); }
};

const std::string a_minute_later = "2026-01-01T00:01:00Z";
const std::string a_row = aws_box::row("shardId-1", "TRIM_HORIZON");

forked_result from_stdin(const std::string& text, std::vector<std::string> options = {}) {
  const sandbox box;
  box.write("scan.json", text);
  const kclxx::io::descriptor input(::open((box / "scan.json").c_str(), O_RDONLY | O_CLOEXEC));
  options.insert(options.begin(), {"leases", "-"});
  return box.kclxx(options, {}, input.get());
}

}  // namespace

TEST_CASE("aws is asked twice, with its options, and a counter that moves is fine") {
  const aws_box box(a_row);
  box.show(aws_box::row("shardId-1", "TRIM_HORIZON", "8"), "next");
  const auto found = box.kclxx({"leases", "my-app", "--interval", "0.2", "--region", "eu-north-1",
                                "--profile", "p", "--endpoint-url", "http://127.0.0.1:1"});
  CAPTURE(found.err);
  CHECK(found.status == 0);
  CHECK(found.out.starts_with("table my-app, 2 scans in "));
  CHECK(contains(found.out, "shardId-1  host-1        8  yes    TRIM_HORIZON/3    -  ok\n"));
  const std::string options =
      " --consistent-read --output json --profile p --region eu-north-1 --endpoint-url "
      "http://127.0.0.1:1\n";
  CHECK(box.read("asked").starts_with("dynamodb scan --table-name my-app" + options +
                                      "dynamodb scan --table-name my-app-CoordinatorState" +
                                      options));
}

TEST_CASE("a counter that stands still is stuck, and the exit status tells") {
  const aws_box box(a_row);
  const auto found = box.kclxx({"leases", "my-app", "--interval", "0.2"});
  CHECK(found.status == 1);
  CHECK(contains(found.out, "  no     TRIM_HORIZON/3    -  stuck: host-1 has not renewed it for "));
  const auto json = box.kclxx({"leases", "my-app", "--interval", "0.2", "--json"});
  CHECK(json.status == 1);
  CHECK(contains(json.out, "\"stuck\": true"));
}

TEST_CASE("a watch goes on until its reader leaves") {
  const aws_box box(a_row);
  box.program("bin/watched", std::string("{ ") + KCLXX_TOOL +
                                 " leases my-app --watch --json --interval 0.1; echo $? "
                                 ">$HOME/status; } 2>/dev/null | head -n 3\n");
  const auto found = box.start({"watched"}).result();
  CHECK(found.status == 0);
  CHECK(count(found.out, "\n") == 3);
  CHECK(contains(found.out, "\"scans\":3,"));
  CHECK_FALSE(contains(found.out, "\"stuck\":true"));  // a lease may be renewed more rarely
  CHECK(!box.read("status").empty());
}

TEST_CASE("a scan from stdin is shown once, and says what it does not tell") {
  const auto found = from_stdin(scan_of(a_row));
  CHECK(found.status == 0);
  CHECK(found.out.starts_with("stdin\nshard "));
  CHECK(contains(found.out, "note: whether counters move is not known from one scan\n"));
  CHECK(contains(from_stdin(scan_of(a_row), {"--json"}).out, "\"moves\": null"));
  CHECK(from_stdin(R"({"Items": []})").status == 1);
}

TEST_CASE("what cannot be read is told in one line") {
  const auto is_told = [](const forked_result& found, int status, const std::string& text) {
    CAPTURE(found.err);
    CHECK(found.status == status);
    CHECK(found.out.empty());
    CHECK(contains(found.err, "kclxx leases: " + text));
    CHECK(count(found.err, "\n") == 1);
  };
  is_told(from_stdin("{"), 5, "stdin: it is no JSON: wrong or cut off at line 1, column 2\n");
  is_told(from_stdin(""), 5, "stdin: it is empty\n");
  is_told(from_stdin(scan_of(a_row), {"--watch"}), 2, "--watch is for a table that aws reads");
  const aws_box box(aws_box::row("shardId-1", "TRIM_HORIZON", "x"));
  is_told(box.kclxx({"leases", "other"}), 5, "there is no table other where aws looks");
  is_told(box.kclxx({"leases", "my-app"}), 5,
          "what aws prints of my-app: Items[0]: leaseCounter is not a whole number\n");
  box.program("bin/aws", "echo >&2; echo 'Unable to locate credentials.' >&2; exit 253\n");
  is_told(box.kclxx({"leases", "my-app"}), 5,
          "aws ended with exit status 253: Unable to locate credentials.\n");
  is_told(box.kclxx({"leases", "my-app"}, {"PATH=" + (box / "none").string()}), 5,
          "aws is not in PATH; on Debian: apt-get install awscli.");
}

TEST_CASE(
    "a rewind shows the record before the time and how much comes again, and writes nothing") {
  const aws_box box(aws_box::row("shardId-1", "103"));
  const auto seen = box.rewind({"--rewind", a_minute_later});
  CAPTURE(seen.out, seen.err);
  CHECK(seen.status == 0);
  CHECK(seen.out ==
        "shardId-1  103/3 -> 101  again: from 2026-01-01T00:01:00.000Z\n"
        "nothing was written; --yes writes, once all workers are stopped\n");
  CHECK_FALSE(box.has_written());
  CHECK(contains(box.read("asked"), "--stream-name clicks --shard-id shardId-1"));
}

TEST_CASE("a rewind takes the lease away and moves it, if the row is as it was read") {
  const aws_box box(aws_box::row("shardId-1", "103"));
  const auto seen = box.rewind({"--rewind", a_minute_later, "--yes"});
  CAPTURE(seen.out, seen.err);
  REQUIRE(seen.status == 0);
  CHECK(contains(seen.out, "1 of 1 rows were written\n"));
  const std::string update = box.read("updates");
  for (const char* text :
       {"--table-name my-app --key {\"leaseKey\":{\"S\":\"shardId-1\"}}",
        "REMOVE leaseOwner, checkpointOwner",
        "--condition-expression leaseCounter = :counter AND checkpoint = :old AND leaseOwner = "
        ":owner AND "
        "checkpointSubSequenceNumber = :oldsub",
        "\":counter\":{\"N\":\"7\"}", "\":next\":{\"N\":\"8\"}", "\":new\":{\"S\":\"101\"}",
        "\":sub\":{\"N\":\"0\"}", "\":old\":{\"S\":\"103\"}"}) {
    CAPTURE(text);
    CHECK(contains(update, text));
  }

  std::string file;
  for (const std::string& name : box.list(".")) {
    if (name.ends_with(".rows.json")) file = name;
  }
  REQUIRE(contains(seen.out, "the old rows are in " + file));
  box.show(aws_box::row("shardId-1", "101", "9"));
  const auto restored = box.rewind({"--restore", file, "--yes"});
  CAPTURE(restored.out, restored.err);
  CHECK(restored.status == 0);
  const std::string second = box.read("updates").substr(update.size());
  CHECK(contains(second, "\":new\":{\"S\":\"103\"}"));
  CHECK(contains(second, "\":sub\":{\"N\":\"3\"}"));

  SECTION("what has moved on since is not restored") {
    box.show(aws_box::row("shardId-1", "102"));
    const auto refused = box.rewind({"--restore", file, "--yes"});
    CHECK(refused.status == 1);
    CHECK(contains(refused.out, "it is no longer where the move has put it"));
  }
  SECTION("what was not moved is there") {
    box.show(aws_box::row("shardId-1", "103"));
    CHECK(contains(box.rewind({"--restore", file, "--yes"}).out, "stays: it is there"));
  }
  CHECK(box.read("updates") == update + second);
}

TEST_CASE("a rewind writes nothing while a worker renews the lease") {
  const aws_box box(aws_box::row("shardId-1", "103"));
  box.show(aws_box::row("shardId-1", "103", "8"), "next");
  const auto seen = box.rewind({"--rewind", "TRIM_HORIZON", "--yes"});
  CHECK(seen.status == 1);
  CHECK(contains(seen.err, "host-1 renews the lease of shardId-1: stop all workers first"));
  CHECK_FALSE(box.has_written());
}

TEST_CASE("a row that changes between the read and the write stays as it is") {
  const aws_box box(aws_box::row("shardId-1", "103"));
  box.write("changed", "");
  const auto seen = box.rewind({"--rewind", "TRIM_HORIZON", "--yes"});
  CHECK(seen.status == 1);
  CHECK(contains(seen.out, "shardId-1 was not written: its row has changed meanwhile"));
  CHECK(contains(seen.out, "0 of 1 rows were written"));
}

TEST_CASE("how many rows were written is told when aws fails between them") {
  const aws_box box(aws_box::row("shardId-1", "103") + ", " + aws_box::row("shardId-2", "103"),
                    R"({"ShardId": "shardId-1"}, {"ShardId": "shardId-2"})");
  box.write("fails_later", "");
  const auto seen = box.rewind({"--rewind", "TRIM_HORIZON", "--yes"});
  CHECK(seen.status == 5);
  CHECK(contains(seen.out, "1 of 2 rows were written\n"));
}

TEST_CASE("a file whose rows have no positions is not restored") {
  const aws_box box(aws_box::row("shardId-1", "101"));
  const auto restored = [&](const std::string& number, const std::string& sub) {
    box.write("rows.json",
              R"({"table": "my-app", "rows": [{"written": "101", "row": {"leaseKey": {"S": )"
              R"("shardId-1"}, "checkpoint": {"S": ")" +
                  number + R"("}, "checkpointSubSequenceNumber": {"N": ")" + sub + "\"}}}]}");
    return box.rewind({"--restore", "rows.json", "--yes"});
  };
  for (const auto& [number, sub] : {std::pair{"banana", "0"}, std::pair{"", "0"},
                                    std::pair{"103", "-5"}, std::pair{"103", "x"}}) {
    const auto refused = restored(number, sub);
    CAPTURE(number, sub);
    CHECK(refused.status == 5);
    CHECK(contains(refused.err, "rows.json: the row of shardId-1 has no position"));
  }
  box.write("rows.json", R"({"table": "my-app", "rows": []})");
  const auto empty = box.rewind({"--restore", "rows.json", "--yes"});
  CHECK(empty.status == 5);
  CHECK(contains(empty.err, "rows.json has no row that is to be restored"));
  CHECK_FALSE(box.has_written());
}

TEST_CASE("with a stream the leases of another stream are told in one line") {
  const aws_box box(aws_box::row("shardId-1", "103") + ", " + aws_box::row("shardId-2", "103"),
                    R"({"ShardId": "shardId-1", "SequenceNumberRange": {)"
                    R"("StartingSequenceNumber": "104"}}, {"ShardId": "shardId-2", )"
                    R"("SequenceNumberRange": {"StartingSequenceNumber": "103"}})");
  for (const std::string& target : {a_minute_later, std::string("LATEST")}) {
    const auto refused = box.rewind({"--rewind", target, "--shard", "shardId-1", "--yes"});
    CHECK(refused.status == 1);
    CHECK(contains(refused.out, "stays: its position is of another stream than clicks\n"));
    CHECK_FALSE(box.has_written());
  }
  const auto seen =
      box.rewind({"--region", "eu-north-1", "--kinesis-endpoint-url", "http://127.0.0.1:1"});
  CAPTURE(seen.out, seen.err);
  CHECK(seen.status == 1);
  CHECK(contains(seen.out, "\nstuck: rows that the stream clicks cannot have: shardId-1 at 103: "));
  CHECK(contains(box.read("asked"),
                 "kinesis list-shards --stream-name clicks --output json --region eu-north-1 "
                 "--endpoint-url http://127.0.0.1:1\n"));
  box.write("shards", "[]");
  const auto garbled = box.rewind({});
  CHECK(garbled.status == 5);
  CHECK(contains(garbled.err, "kclxx leases: what aws kinesis prints: it is no object\n"));
}

TEST_CASE("each kind of row has its outcome in a rewind") {
  const auto of = [](const std::string& rows, std::vector<std::string> options,
                     const std::string& shards = R"({"ShardId": "shardId-1"})") {
    const aws_box box(rows, shards);
    options.insert(options.begin(), "--rewind");
    const auto seen = box.rewind(options);
    CAPTURE(seen.err);
    return std::to_string(seen.status) + " " + seen.out.substr(0, seen.out.find('\n'));
  };
  const auto row = [](const std::string& checkpoint) {
    return aws_box::row("shardId-1", checkpoint);
  };
  CHECK(of(row("SHARD_END"), {a_minute_later}) ==
        "0 shardId-1  SHARD_END/3 -> 101  again: from 2026-01-01T00:01:00.000Z");
  CHECK(of(row("SHARD_END"), {"2026-01-01T00:03:00Z"}) ==
        "0 shardId-1  SHARD_END/3  stays: it ended before that time");
  CHECK(of(row("SHARD_END"), {"LATEST"}) == "0 shardId-1  SHARD_END/3  stays: it has ended");
  CHECK(of(row("103"), {"LATEST"}) ==
        "0 shardId-1  103/3 -> LATEST  skips what comes before the start");
  CHECK(of(row("103"), {"2025-12-31T00:00:00Z"}) ==
        "0 shardId-1  103/3 -> TRIM_HORIZON  again: from 2026-01-01T00:00:00.000Z");
  CHECK(of(row("101"), {"2026-01-01T00:02:00Z"}) ==
        "0 shardId-1  101/3  stays: it has yet to read the records of that time");
  CHECK(of(row("AT_TIMESTAMP"), {a_minute_later}) ==
        "0 shardId-1  AT_TIMESTAMP/3 -> 101  again: from 2026-01-01T00:01:00.000Z");
  CHECK(of(row("103"), {a_minute_later}, R"({"ShardId": "shardId-2"})") ==
        "1 shardId-1  103/3  stays: the stream no longer has this shard");
  const std::string two = R"({"ShardId": "shardId-1"}, {"ShardId": "shardId-2"})";
  CHECK(of(row("103"), {a_minute_later, "--yes"}, two).starts_with("1 shardId-1"));
  CHECK(of(row("103"), {a_minute_later, "--shard", "shardId-1", "--yes"}, two)
            .starts_with("0 shardId-1  103/3 -> 101"));
  CHECK(of(row("SHARD_END"),
           {"TRIM_HORIZON", "--shard", "shardId-1", "--shard", "shardId-1", "--yes"},
           two) == "0 shardId-1  SHARD_END/3 -> TRIM_HORIZON  again: all that is kept");
  const auto without_row = aws_box(row("103"), two).rewind({"--rewind", a_minute_later, "--yes"});
  CHECK(contains(without_row.out,
                 "shardId-2  -  stays: it has no row, so its records do not come again"));
  CHECK(contains(without_row.out, "nothing was written\n"));
}

TEST_CASE("what a rewind cannot use is told in one line") {
  const aws_box box(aws_box::row("shardId-1", "103"));
  const auto is_told = [&](std::vector<std::string> options, int status, const std::string& text) {
    const auto seen = box.rewind(std::move(options));
    CAPTURE(seen.err);
    CHECK(seen.status == status);
    CHECK(contains(seen.err, text));
    CHECK_FALSE(box.has_written());
  };
  is_told({"--rewind", "yesterday"}, 2, "--rewind yesterday is no TRIM_HORIZON");
  is_told({"--rewind", "2999-01-01T00:00:00Z"}, 2, "is in the future");
  is_told({"--yes"}, 2, "--yes is for --rewind and --restore");
  is_told({"--endpoint-url", "http://127.0.0.1:1"}, 2, "give --kinesis-endpoint-url, too");
  is_told({"--rewind", "LATEST", "--shard", "shardId-9"}, 5, "has no lease of shardId-9");
  is_told({"--restore", "none", "--shard", "shardId-9"}, 5, "has no lease of shardId-9");
  is_told({"--restore", "none"}, 5, "none cannot be read");
  is_told({"--restore", "shards"}, 5, "shards \"table\" is missing");
  box.write("records", "{}");
  is_told({"--rewind", a_minute_later}, 5, "what aws kinesis prints: it has no list Records");
  const auto without_stream = box.kclxx({"leases", "my-app", "--rewind", "LATEST"});
  CHECK(without_stream.status == 2);
  CHECK(contains(without_stream.err, "--rewind requires --stream"));
}
