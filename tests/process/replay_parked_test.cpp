// SPDX-License-Identifier: Apache-2.0
// kclxx replay --parked: parked records come again.
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "process/replayed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/text.hpp"

using namespace kclxx::test;

namespace {

std::string parked(const std::string& shard, const std::string& number, const std::string& data,
                   const std::string& sub = "0") {
  return R"({"shard":")" + shard + R"(","sequenceNumber":")" + number +
         R"(","subSequenceNumber":)" + sub +
         R"(,"partitionKey":"k","attempts":5,"firstError":"a","lastError":"b","parkedAt":1,"data":")" +
         data + "\"}\n";
}

/// "YQ==" is a, "Yg==" b, "Yw==" c.
struct parking_box : sandbox {
  /// kclxx replay with these and a child that writes into `out`, and parks what begins with
  /// `failing`.
  [[nodiscard]] forked_result replay(words arguments, const words& failing = {},
                                     const words& environment = {}) const {
    arguments.insert(arguments.begin(), "replay");
    arguments.insert(arguments.end(), {"--", KCLXX_PARKING_CHILD, (*this / "out").string()});
    arguments.insert(arguments.end(), failing.begin(), failing.end());
    return kclxx(arguments, environment);
  }
};

}  // namespace

TEST_CASE("records that a child has parked are delivered again, in order", "[replay][parked]") {
  const parking_box box;
  box.write("dialogue.jsonl", initialize + "\n" + records_line({"a", "b", "c"}, 100) + "\n" +
                                  R"({"action":"shutdownRequested"})" + "\n");
  const auto first = box.replay({"dialogue.jsonl"}, {"b"});
  CAPTURE(first.out, first.err);
  REQUIRE(first.status == 0);
  CHECK(box.read("out") == "a\nc\n");
  const auto file = box / "shardId-000000000007.parked.jsonl";
  REQUIRE(std::filesystem::exists(file));
  CHECK(first.err.find("record 101/0 (partition key 'key') parked after 2 attempts") !=
        std::string::npos);

  std::filesystem::rename(file, box / "again.jsonl");
  const auto second = box.replay({"--parked", "again.jsonl"});
  CAPTURE(second.out, second.err);
  CHECK(second.status == 0);
  CHECK(box.read("out") == "a\nc\nb\n");
  CHECK_THAT(second.out, Contains("1 of 1 records are complete"));
  CHECK_THAT(second.out, Contains("resumes       after 101/0"));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a program that keeps its position applies parked records, also those that failed again",
          "[replay][parked]") {
  const parking_box box;
  // Live, it came to 109. Two machines had parked records of the shard before that.
  box.write("dialogue.jsonl", initialize + "\n" + records_line({"live"}, 109) + "\n" +
                                  R"({"action":"shutdownRequested"})" + "\n");
  REQUIRE(box.replay({"dialogue.jsonl"}).status == 0);
  const std::string shard = "shardId-000000000007";
  box.write("a.jsonl", parked(shard, "101", "YQ==") + parked(shard, "103", "Yw=="));
  box.write("b.jsonl", parked(shard, "102", "Yg=="));
  const auto first = box.replay({"--parked", "a.jsonl"}, {"c"});
  CAPTURE(first.out, first.err);
  CHECK(first.status == 0);
  const auto second = box.replay({"--parked", "b.jsonl"});
  CHECK(second.status == 0);
  CHECK(box.read("out") == "live\na\nb\n");

  std::string again;
  for (const std::string& name : box.list(".")) {
    if (name.starts_with("parked-")) again = name;
  }
  CAPTURE(again);
  REQUIRE(again.ends_with("-" + shard + ".parked.jsonl"));
  // In the same run as another file with the shard's own name.
  const auto third = box.replay({"--parked", again, "b.jsonl"});
  CAPTURE(third.out);
  CHECK(third.status == 0);
  CHECK(box.read("out") == "live\na\nb\nb\nc\n");
  CHECK_THAT(third.out, Contains("2 records of " + shard));
}

TEST_CASE("each run of parked records has names of its own, and prints them", "[replay][parked]") {
  const parking_box box;
  // Two streams with the same shard. What has no stream is of the one that it can only be of.
  const std::string of_one = parked("s", "1", "YQ==");
  const auto of = [&](const std::string& stream) {
    return R"({"application":"a","stream":")" + stream + "\"," + of_one.substr(1);
  };
  std::set<std::string> names;
  for (const std::string& text : {of("one") + of("two"), of("one") + of_one, of_one}) {
    box.write("a.jsonl", text);
    const auto run = box.replay({"--parked", "--json", "a.jsonl"});
    CAPTURE(run.out, run.err);
    REQUIRE(run.status == 0);
    const auto result = nlohmann::json::parse(run.out);
    for (const auto& shard : result.at("shards")) {
      const auto name = shard.at("shard").get<std::string>();
      CHECK(names.insert(name).second);
      CHECK(shard.at("parked").at("shard") == "s");
      CHECK(name.starts_with("parked-"));
      CHECK(name.ends_with("-s"));
    }
    CHECK_THAT(run.err, Contains("kclxx replay: the names of the shards begin with parked-"));
  }
  CHECK(names.size() == 4);
  CHECK(box.read("out") == "a\na\na\na\n");
}

TEST_CASE("a run of parked records that broke off is continued under its name",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s", "1", "YQ==") + parked("s", "2", "Yg=="));
  const auto first = box.replay({"--parked", "a.jsonl"});
  CAPTURE(first.err);
  const std::string as = first.err.substr(first.err.find("--as ") + 5);
  REQUIRE(box.replay({"--parked", "--as", as.substr(0, as.find('\n')), "a.jsonl"}).status == 0);
  CHECK(box.read("out") == "a\nb\n");
  REQUIRE(box.replay({"--parked", "a.jsonl"}).status == 0);
  CHECK(box.read("out") == "a\nb\na\nb\n");
  CHECK(box.replay({"--parked", "--as", "live", "a.jsonl"}).status == 2);
}

TEST_CASE("a record that was parked twice is delivered once, and a different one is refused",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s", "1", "YQ==") + parked("s", "1", "YQ=="));
  const auto twice = box.replay({"--parked", "a.jsonl"});
  CHECK_THAT(twice.out, Contains("1 record of s, under the name above, each once: 2 lines have"));
  CHECK(box.read("out") == "a\n");
  box.write("a.jsonl", parked("s", "1", "YQ==") + parked("s", "1", "Yg=="));
  const auto different = box.replay({"--parked", "a.jsonl"});
  CHECK(different.status == 4);
  CHECK_THAT(different.err, Contains("a.jsonl:2: is another record than a.jsonl:1"));
}

TEST_CASE("parked records of several files are played by shard, in order, and once each",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s-2", "9", "eQ==") + parked("s-1", "100", "Yw==") +
                           parked("s-2", "9", "eA==", "1"));
  box.write("b.jsonl", parked("s-1", "20", "YQ==") + parked("s-1", "100", "Yw==") +
                           R"({"shard":"s-1","lastError":"{\"code\":5})" + "\n" +
                           parked("s-1", "30", "ZA==") + std::string(300, '\0') + "\n" +
                           R"({"shard":"s-1","sequ)" + std::string(9, '\0') + "\"}\n" +
                           R"({"shard":"s-1","sequenceNum)");
  const auto result = box.replay({"--parked", "a.jsonl", "b.jsonl"});
  CAPTURE(result.out, result.err);
  CHECK(result.status == 0);
  const std::string out = box.read("out");  // of two children
  CHECK(out.size() == 10);
  CHECK(out.find('a') < out.find('d'));
  CHECK(out.find('d') < out.find('c'));
  CHECK(out.find('y') < out.find('x'));
  CHECK_THAT(result.out, Contains("-s-1  a.jsonl, b.jsonl"));
  CHECK_THAT(result.out, Contains("-s-2  a.jsonl"));
  CHECK_THAT(result.err, Contains("b.jsonl:3: left out, since it is cut off"));
  CHECK_THAT(result.err, Contains("b.jsonl:5: left out, since it is cut off"));
  CHECK_THAT(result.err, Contains("b.jsonl:6: left out, since it is cut off"));
  CHECK_THAT(result.err, Contains("b.jsonl:7: left out, since it is cut off"));
}

/// Whether a kclxx has it open.
static bool is_being_read(const std::filesystem::path& file) {
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    if (std::filesystem::read_symlink(process.path() / "exe", error).filename() != "kclxx")
      continue;
    std::error_code end;
    for (std::filesystem::directory_iterator fd(process.path() / "fd", end), none;
         !end && fd != none; fd.increment(end)) {
      if (std::filesystem::read_symlink(fd->path(), error) == file) return true;
    }
  }
  return false;
}

TEST_CASE("a line that is being written when the file is moved away is delivered, too",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s", "1", "YQ=="));
  const int writer = ::open((box / "a.jsonl").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(::flock(writer, LOCK_EX) == 0);
  std::optional<forked_result> replay;
  std::thread reads([&] { replay.emplace(box.replay({"--parked", "a.jsonl"})); });
  const bool waits = eventually([&] { return is_being_read(box / "a.jsonl"); });
  const std::string second = parked("s", "2", "Yg==");
  CHECK(::write(writer, second.data(), second.size()) == static_cast<ssize_t>(second.size()));
  ::close(writer);
  reads.join();
  CHECK(waits);
  CHECK_THAT(replay->out, Contains("2 of 2 records are complete"));
}

TEST_CASE("a file that another process keeps locked is read as it is", "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s", "1", "YQ=="));
  const int stranger = ::open((box / "a.jsonl").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(stranger, LOCK_EX) == 0);
  const auto replay = box.replay({"--parked", "a.jsonl"});
  ::close(stranger);
  CHECK_THAT(replay.err, Contains("a.jsonl: another process has locked it for 5 s"));
  CHECK_THAT(replay.out, Contains("1 of 1 records are complete"));
}

TEST_CASE("when the child fails at a parked record, what is before it is complete",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl",
            parked("s", "1", "YQ==") + parked("s", "2", "Yg==") + parked("s", "3", "Yw=="));
  // Without a place to park, the child tries without end.
  const auto failed = box.replay({"--parked", "--timeout", "2", "a.jsonl"}, {"b"},
                                 {"KCLXX_PARKING_DIR=/nonexistent"});
  CHECK(failed.status == 3);
  CHECK_THAT(failed.out, Contains("1 of 3 records are complete"));

  // A child that answers and never checkpoints leaves it unknown.
  const auto silent =
      box.kclxx({"replay", "--parked", "--json", "a.jsonl", "--", KCLXX_SIMPLE_CHILD});
  CAPTURE(silent.out);
  CHECK(silent.status == 1);
  CHECK_THAT(silent.out, Contains("\"complete\": 0"));
}

TEST_CASE("what is no file of parked records is one line, and nothing is played",
          "[replay][parked]") {
  const parking_box box;
  const auto [line, why] = GENERATE(table<std::string, std::string>({
      {R"({"kclxx_transcript":1})", "sequenceNumber"},
      {"{nonsense}", "is no JSON: wrong or cut off at line 1, column 3"},
      {R"({"shard":"s","sequenceNumber":"x","subSequenceNumber":0})",
       "\"sequenceNumber\" is not a number: 'x'"},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":0,"data":"*"})",
       "\"data\" is not base64"},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":1e300,"data":""})",
       "\"subSequenceNumber\" is no whole number from 0 to "},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":18446744073709551616,"data":""})",
       "\"subSequenceNumber\" is no whole number from 0 to "},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":0,"data":"",)"
       R"("approximateArrivalTimestamp":1e300})",
       "\"approximateArrivalTimestamp\" is no whole number from "},
      {R"({"shard":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}",
       "is nested deeper than 100 levels"},
      {R"({"shard":"s","more":-1e900})", "has a number that is too large"},
      {R"({"sequenceNumber":"1","subSequenceNumber":0,"data":""})", "\"shard\" is missing"},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":0})", "\"data\" is missing"},
  }));
  CAPTURE(line);
  box.write("a.jsonl", parked("s", "1", "YQ==") + line + "\n");
  const auto result = box.replay({"--parked", "a.jsonl"});
  CHECK(result.status == 4);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Contains("a.jsonl:2: is not a parked record: "));
  CHECK_THAT(result.err, Contains(why));
  CHECK_FALSE(std::filesystem::exists(box / "out"));
}

TEST_CASE("files without a parked record are an error", "[replay][parked]") {
  const sandbox box;
  const std::string text = GENERATE("", "\n\n", R"({"shard":"s","sequ)");
  CAPTURE(text);
  box.write("again.jsonl", text);
  const auto result = box.kclxx({"replay", "--parked", "again.jsonl", "--", KCLXX_SIMPLE_CHILD});
  CHECK(result.status == 4);
  CHECK(contains(result.err, "kclxx replay: there is no parked record in the files\n"));
}
