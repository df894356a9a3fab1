// SPDX-License-Identifier: Apache-2.0
// A real child on real pipes: input that is odd, bad, or a plain file.
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;

// A launcher takes a pipe that has ended for a daemon that has gone, hence a process of its own.
TEST_CASE("a dialogue is played from a plain file, and through a pipe",
          "[process][P58][own-process]") {
  const std::string dialogue = R"({"action":"initialize","shardId":"s"})"
                               "\n" +
                               records_line({"checkpoint"}, 7) + "\n" +
                               R"({"action":"checkpoint","sequenceNumber":"7"})"
                               "\n" +
                               records_line({"x", "y"}, 8) + "\n" +
                               R"({"action":"checkpoint","sequenceNumber":"9"})"
                               "\n"
                               R"({"action":"leaseLost"})";  // no newline at the end
  const auto is_played = [](scripted_daemon& daemon) {
    daemon.expect_status("initialize");
    daemon.expect_checkpoint("7");
    daemon.expect_status("processRecords");
    daemon.expect_checkpoint("9");
    daemon.expect_status("processRecords");
    daemon.expect_status("leaseLost");
    CHECK(daemon.wait_exit() == 0);
    CHECK(contains(daemon.stderr_so_far(), "persisted"));
  };
  SECTION("from a file") {
    const auto file = std::filesystem::temp_directory_path() /
                      ("kclxx-dialogue-" + std::to_string(::getpid()) + ".jsonl");
    std::ofstream(file) << dialogue;
    scripted_daemon daemon({child, "at_once"}, {file.string(), {}});
    is_played(daemon);
    std::filesystem::remove(file);
  }
  SECTION("through a pipe that ends at once") {
    scripted_daemon daemon({child, "at_once"});
    daemon.send_raw(dialogue);
    daemon.close_input();
    is_played(daemon);
  }
}

TEST_CASE("bad input gets one clear line, and the documented status", "[process][P54]") {
  const auto [line, complaint] = GENERATE(table<std::string, std::string>({
      {"\x01\x02\xff\xfe noise", "\\x01\\x02"},
      {R"({"action":"processRecords"})", "records is missing"},
      {R"({"action":"processRecords","records":[{"sequenceNumber":null}]})",
       "records[0].sequenceNumber is null"},
      {R"({"action":"processRecords","records":[{"sequenceNumber":12}]})",
       "records[0].sequenceNumber is not a string"},
      {R"({"action":"shutdown","reason":"BORED"})", "reason is none of"},
  }));
  CAPTURE(line);
  started_child daemon;
  daemon.send(line);
  CHECK(daemon.wait_exit() == 11);
  const std::string said = daemon.stderr_so_far();
  CHECK(contains(said, "bad line from the daemon: "));
  CHECK(contains(said, complaint));
  CHECK(contains(said, "begins: "));
  CHECK(count(said, "kclxx shardId-000000000007 error: ") == 1);
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
