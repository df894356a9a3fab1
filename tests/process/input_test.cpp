// SPDX-License-Identifier: Apache-2.0
// A real child on real pipes: input that is odd, bad, or a plain file.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;

TEST_CASE("a plain file as stdin is worked off and ends in order", "[process][P58]") {
  const auto file = std::filesystem::temp_directory_path() /
                    ("kclxx-dialogue-" + std::to_string(::getpid()) + ".jsonl");
  std::ofstream(file) << R"({"action":"initialize","shardId":"s"})"
                      << "\n"
                      << records_line({"checkpoint"}, 7) << "\n"
                      << R"({"action":"checkpoint","sequenceNumber":"7"})"
                      << "\n"
                      << records_line({"x", "y"}, 8) << "\n"
                      << R"({"action":"checkpoint","sequenceNumber":"9"})"
                      << "\n"
                      << R"({"action":"leaseLost"})";  // no newline at the end
  scripted_daemon daemon({child, "at_once"}, {file.string(), {}});
  daemon.expect_status("initialize");
  daemon.expect_checkpoint("7");
  daemon.expect_status("processRecords");
  daemon.expect_checkpoint("9");
  daemon.expect_status("processRecords");
  daemon.expect_status("leaseLost");
  CHECK(daemon.wait_exit() == 0);
  CHECK(contains(daemon.stderr_so_far(), "persisted"));
  std::filesystem::remove(file);
}

TEST_CASE("bad input gets one clear line, and the documented status", "[process][P54]") {
  struct bad {
    std::string line;
    std::string complaint;
  };
  const auto record = [](const std::string& fields) {
    return R"({"action":"processRecords","records":[{"action":"record",)" + fields +
           R"(}],"millisBehindLatest":0})";
  };
  const bad bad_case = GENERATE_COPY(values<bad>({
      {R"({"action":"processRecords","records":[{)", "is not valid JSON"},
      {"\x01\x02\xff\xfe noise", "\\x01\\x02"},
      {R"({"action":"processRecords"})", "records is missing"},
      {record(R"("data":"YWJj")"), "records[0].sequenceNumber is missing"},
      {record(R"("data":"YWJj","sequenceNumber":null)"), "records[0].sequenceNumber is null"},
      {record(R"("data":"YWJj","sequenceNumber":12)"), "records[0].sequenceNumber is not a string"},
      {record(R"("data":"YWJ","sequenceNumber":"1")"), "records[0].data is base64 that is cut off"},
      {R"({"action":"shutdown","reason":"BORED"})", "reason is none of"},
      {R"({"action":"leaseLost"} tail)", "is not"},
  }));
  CAPTURE(bad_case.line);
  started_child daemon;
  daemon.send(bad_case.line);
  CHECK(daemon.wait_exit() == 11);
  const std::string said = daemon.stderr_so_far();
  CHECK(contains(said, "bad line from the daemon: "));
  CHECK(contains(said, bad_case.complaint));
  CHECK(contains(said, "begins: "));
  const auto at = said.find("kclxx shardId-000000000007 error: ");
  REQUIRE(at != std::string::npos);
  CHECK(said.find("kclxx shardId", at + 1) == std::string::npos);  // one line
}

TEST_CASE("a line over the limit is refused by its length", "[process][P6]") {
  started_child daemon({"small_lines"});
  daemon.send_raw(R"({"action":"processRecords","records":[)" + std::string(2000, ' '));
  CHECK(daemon.wait_exit() == 11);
  CHECK(contains(daemon.stderr_so_far(), "longer than the limit of 1000 bytes"));
}

TEST_CASE("an input that cannot be read ends the process with one line", "[process][P66]") {
  scripted_daemon daemon({child}, {"/", {}});
  CHECK(daemon.wait_exit() == 12);
  const std::string said = daemon.stderr_so_far();
  CHECK(contains(said, "cannot read from the daemon: Is a directory"));
  CHECK(count(said, "kclxx error: ") == 1);
}

#ifndef KCLXX_IS_SANITIZED  // a sanitizer needs more address space than there is
TEST_CASE("without memory for a line the process leaves, and whatever waits fails",
          "[process][own-process]") {
  started_child daemon({"manual"});
  std::string expected;
  SECTION("while idle") { daemon.process({"limit the memory"}); }
  SECTION("while a callback waits in checkpoint()") {
    daemon.records({"limit the memory", "checkpoint"});
    daemon.expect_checkpoint("2");
    expected = "checkpoint failed: the daemon is gone";
  }
  SECTION("while another thread waits in checkpoint()") {
    daemon.process({"limit the memory", "checkpoint between callbacks"});
    daemon.await_stderr("thread waits");
    expected = "thread: the daemon is gone";
  }
  const std::string piece(1 << 20, ' ');
  while (daemon.send_raw(piece)) continue;
  CHECK(daemon.wait_exit() == 16);
  const std::string said = daemon.stderr_so_far();
  CHECK(contains(said, expected));
  CHECK(contains(said, "cannot serve the daemon: "));
  CHECK(count(said, " error: ") == 1);
}
#endif
