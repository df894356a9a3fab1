// SPDX-License-Identifier: Apache-2.0
// `kclxx capture` and lines that are longer than a pipe.
#include <string>
#include <thread>

#include "process/captured_dialogue.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using kclxx::tool::child_exit;
using kclxx::tool::child_process;

namespace {

const std::string initialize =
    R"({"action":"initialize","shardId":"shardId-000000000007","sequenceNumber":"TRIM_HORIZON"})";

}  // namespace

TEST_CASE("a line of 20 MB passes; the daemon's is recorded whole, of the child's the beginning",
          "[process][capture]") {
  const std::string line = "{\"x\":\"" + std::string(20'000'000, 'x') + "\"}\n";
  captured_dialogue dialogue({"cat"});
  std::thread writer([&] {
    dialogue.send(line);
    dialogue.close_input();
  });
  CHECK((dialogue.rest() == line));
  writer.join();
  CHECK(dialogue.wait() == child_exit{0, 0});
  const auto transcript = dialogue.transcript();
  CHECK((transcript.daemon + "\n" == line));
  CHECK((transcript.child == line.substr(0, 1 << 20)));
  CHECK(transcript.cut_length == line.size() - 1);
}

TEST_CASE("a long line that is no object, or never ends, is recorded as text",
          "[process][capture]") {
  const std::string line = "{\"x\":\"" + std::string(500'000, 'x');
  const auto end = GENERATE("\" oops\n", "\"}", "");
  captured_dialogue dialogue({"cat"});
  std::thread writer([&] {
    dialogue.send(initialize + "\n" + line + end);
    dialogue.close_input();
  });
  CHECK((dialogue.rest() == initialize + "\n" + line + end));
  writer.join();
  CHECK(dialogue.wait() == child_exit{0, 0});
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  std::string expected = initialize + "\n" + line + end;
  if (expected.ends_with('\n')) expected.pop_back();
  CHECK((transcript.daemon == expected));
  CHECK((transcript.child == expected));
  CHECK(transcript.events == "end_of_input end_of_output exit 0 ");
}

TEST_CASE("what the child writes while a long line comes is recorded before it",
          "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "head -c 400000 >/dev/null; echo early; cat"});
  const std::string line = "{\"x\":\"" + std::string(400'000, 'x');
  dialogue.send(line);
  CHECK(dialogue.read(6) == "early\n");
  dialogue.send("\"}\n{}\n");
  dialogue.close_input();
  dialogue.rest();
  CHECK(dialogue.wait() == child_exit{0, 0});
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  CHECK((transcript.daemon == line + "\"}\n{}"));
  CHECK(transcript.child.starts_with("early\n"));
  CHECK(transcript.order.starts_with("cd"));
}

TEST_CASE("output without a newline takes little memory, and its end and exit are recorded",
          "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "head -c 200000000 /dev/zero; read line; exit 4"},
                             child_process::error_output::piped);
  REQUIRE(dialogue.read(200'000'000).size() == 200'000'000);
  CHECK(dialogue.peak_memory() < 150'000);
  dialogue.send("{}\n");
  CHECK(dialogue.wait() == child_exit{4, 0});
  CHECK(dialogue.rest_of_error().empty());
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  CHECK((transcript.child == std::string(1 << 20, '\0')));
  CHECK(transcript.cut_length == 200'000'000);
  CHECK(transcript.events == "end_of_output exit 4 ");
}

TEST_CASE("a long line that the child dies in is left out", "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "head -c 300000 >/dev/null; exit 3"});
  dialogue.send("{\"x\":\"" + std::string(300'000, 'x'));
  CHECK(dialogue.wait() == child_exit{3, 0});
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  CHECK(transcript.order.empty());
  CHECK(transcript.events == "end_of_output exit 3 ");
}
