// SPDX-License-Identifier: Apache-2.0
// kclxx replay --parked: parked records come again.
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "process/replayed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/locks.hpp"

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

  // What fails again is parked again: complete, and in a new file.
  const auto third = box.replay({"--parked", "again.jsonl"}, {"b"});
  CHECK(third.status == 0);
  CHECK(box.read("shardId-000000000007.parked.jsonl").find(R"("data":"Yg==")") !=
        std::string::npos);
}

TEST_CASE("parked records of several files are played by shard, in order, and once each",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s-2", "9", "Yg==") + parked("s-1", "100", "Yw==") +
                           parked("s-2", "9", "YQ==", "1"));
  box.write("b.jsonl", parked("s-1", "20", "YQ==") + parked("s-1", "100", "Yw==") +
                           R"({"shard":"s-1","lastError":"{\"code\":5})" + "\n" +
                           parked("s-1", "30", "ZA==") + std::string(300, '\0') + "\n" +
                           R"({"shard":"s-1","sequ)" + std::string(9, '\0') + "\"}\n" +
                           R"({"shard":"s-1","sequenceNum)");
  const auto all = box.replay({"--parked", "--parallel", "1", "a.jsonl", "b.jsonl"});
  CAPTURE(all.out, all.err);
  CHECK(all.status == 0);
  CHECK(box.read("out") == "a\nd\nc\nb\na\n");
  CHECK_THAT(all.out, Contains("s-1  a.jsonl, b.jsonl"));
  CHECK_THAT(all.out, Contains("s-2  a.jsonl"));
  CHECK_THAT(all.err, Contains("b.jsonl:3: left out, since it is cut off"));
  CHECK_THAT(all.err, Contains("b.jsonl:5: left out, since it is cut off"));
  CHECK_THAT(all.err, Contains("b.jsonl:6: left out, since it is cut off"));
  CHECK_THAT(all.err, Contains("b.jsonl:7: left out, since it is cut off"));
}

TEST_CASE("a line that is being written when the file is moved away is delivered, too",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl", parked("s", "1", "YQ=="));
  const int writer = ::open((box / "a.jsonl").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(::flock(writer, LOCK_EX) == 0);
  struct stat about {};
  REQUIRE(::fstat(writer, &about) == 0);
  std::optional<forked_result> replay;
  std::thread reads([&] { replay.emplace(box.replay({"--parked", "a.jsonl"})); });
  const bool waits = eventually([&] { return is_lock_awaited(about.st_ino); });
  const std::string second = parked("s", "2", "Yg==");
  CHECK(::write(writer, second.data(), second.size()) == static_cast<ssize_t>(second.size()));
  ::close(writer);
  reads.join();
  CHECK(waits);
  CHECK_THAT(replay->out, Contains("2 of 2 records are complete"));
}

TEST_CASE("when the child fails at a parked record, what is before it is complete",
          "[replay][parked]") {
  const parking_box box;
  box.write("a.jsonl",
            parked("s", "1", "YQ==") + parked("s", "2", "Yg==") + parked("s", "3", "Yw=="));
  // Without a place to park, the child ends at its start.
  const auto failed =
      box.replay({"--parked", "a.jsonl"}, {"b"}, {"KCLXX_PARKING_DIR=/nonexistent"});
  CHECK(failed.status == 3);
  CHECK_THAT(failed.out, Contains("0 of 3 records are complete"));

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
      {"{nonsense}", "parse error"},
      {R"({"shard":"s","sequenceNumber":"x","subSequenceNumber":0})",
       "sequenceNumber 'x' is not a number"},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":0,"data":"*"})", "data: "},
      {R"({"sequenceNumber":"1","subSequenceNumber":0,"data":""})", "key 'shard' not found"},
      {R"({"shard":"s","sequenceNumber":"1","subSequenceNumber":0})", "key 'data' not found"},
  }));
  CAPTURE(line);
  box.write("a.jsonl", parked("s", "1", "YQ==") + line + "\n");
  const auto all = box.replay({"--parked", "a.jsonl"});
  CHECK(all.status == 4);
  CHECK(all.out.empty());
  CHECK_THAT(all.err, Contains("a.jsonl:2: is not a parked record: "));
  CHECK_THAT(all.err, Contains(why));
  CHECK_FALSE(std::filesystem::exists(box / "out"));
}

TEST_CASE("files without a parked record are an error", "[replay][parked]") {
  const sandbox box;
  const std::string text = GENERATE("", "\n\n", R"({"shard":"s","sequ)");
  CAPTURE(text);
  box.write("again.jsonl", text);
  const auto all = box.kclxx({"replay", "--parked", "again.jsonl", "--", KCLXX_SIMPLE_CHILD});
  CHECK(all.status == 4);
  CHECK(contains(all.err, "kclxx replay: there is no parked record in the files\n"));
}
