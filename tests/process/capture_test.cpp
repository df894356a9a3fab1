// SPDX-License-Identifier: Apache-2.0
// `kclxx capture` between a test that plays the daemon, and children of many kinds.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "process/captured_dialogue.hpp"
#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;
using kclxx::tool::child_exit;
using kclxx::tool::child_process;

namespace {

const std::string initialize =
    R"({"action":"initialize","shardId":"shardId-000000000007","sequenceNumber":"TRIM_HORIZON"})";

}  // namespace

TEST_CASE("both directions pass unchanged, however they are cut", "[process][capture]") {
  const auto piece = GENERATE(as<std::size_t>(), 1, 3, 8192, 300'001);
  const std::size_t size = piece == 1 ? 3'000 : 700'000;
  std::string text = initialize + "\n";
  std::minstd_rand random(7);
  while (text.size() < size) {
    text += "{\"x\":\"";
    for (auto n = random() % 5000; n > 0; --n) text += static_cast<char>('a' + random() % 26);
    text += random() % 3 == 0 ? "\" oops\n" : "\"}\n";
    if (random() % 5 == 0) text += "\n";
  }
  text += "{\"unfinished\":";
  captured_dialogue dialogue({"cat"});
  std::thread writer([&] {
    for (std::size_t at = 0; at < text.size(); at += piece) {
      dialogue.send(std::string_view(text).substr(at, piece));
    }
    dialogue.close_input();
  });
  CHECK((dialogue.rest() == text));
  writer.join();
  CHECK(dialogue.wait() == child_exit{0, 0});
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  CHECK((transcript.daemon == text));
  CHECK((transcript.child == text));
  CHECK(transcript.events == "end_of_input end_of_output exit 0 ");
  CHECK(transcript.head.shard == "shardId-000000000007");
  CHECK(transcript.head.command == std::vector<std::string>{"cat"});
  CHECK(transcript.name.starts_with("shardId-000000000007.20"));
}

TEST_CASE("under capture the daemon is asked to stop, and not the capture",
          "[process][capture][worker_stop]") {
  const termination_count counted;
  captured_dialogue dialogue({child}, captured_dialogue::error_output::piped);
  const auto await = [&](const std::string& text) {
    std::string output;
    for (std::string byte = dialogue.read(1); !byte.empty(); byte = dialogue.read(1)) {
      if ((output += byte).find(text) != std::string::npos) return;
    }
    FAIL(output << " has no " << text);
  };
  dialogue.send(initialize + "\n");
  await(R"("responseFor":"initialize")");
  dialogue.send(records_line({"stop the worker"}) + "\n");
  await("checkpoint");
  dialogue.send(R"({"action":"checkpoint","sequenceNumber":"1","subSequenceNumber":0})"
                "\n");
  await(R"("responseFor":"processRecords")");
  dialogue.close_input();
  CHECK_THAT(dialogue.rest_of_error(), Contains(", is asked to stop"));
  CHECK(dialogue.wait().signal == 0);
  CHECK(counted.await_first() == 1);
}

TEST_CASE("under replay no process is asked to stop", "[process][replay][worker_stop]") {
  const termination_count counted;
  const temporary_folder folder;
  const std::string file = (folder.path() / "dialogue.jsonl").string();
  std::ofstream(file) << initialize << '\n' << records_line({"stop the worker"}) << '\n';
  child_process replay({KCLXX_TOOL, "replay", file, "--", child},
                       child_process::error_output::piped);
  CHECK_THAT(read_all(replay.error.get()), Contains("no daemon runs this program"));
  CHECK_THAT(read_all(replay.output.get()), Contains("\nok\n"));
  CHECK(replay.wait() == child_exit{0, 0});
  CHECK(counted.get() == 0);
}

TEST_CASE("the beginning of a line is passed on at once", "[process][capture]") {
  captured_dialogue dialogue({"cat"});
  dialogue.send("{\"action\":");
  CHECK(dialogue.read(10) == "{\"action\":");  // not held until its newline
  dialogue.send("1}\n");
  CHECK(dialogue.read(3) == "1}\n");
}

TEST_CASE("an answer is recorded after the line that it answers", "[process][capture]") {
  captured_dialogue dialogue({"cat"});
  for (int i = 0; i < 300; ++i) {
    const std::string line = "{\"n\":" + std::to_string(i) + ",\"x\":\"" +
                             std::string(static_cast<std::size_t>(i) * 700, 'x') + "\"}\n";
    dialogue.send(line);
    REQUIRE((dialogue.read(line.size()) == line));
  }
  dialogue.close_input();
  CHECK(dialogue.wait() == child_exit{0, 0});
  const std::string order = dialogue.transcript().order;
  std::string expected;
  for (int i = 0; i < 300; ++i) expected += "dc";
  CHECK(order.substr(0, 600) == expected);
}

TEST_CASE("stray prints and bytes that are not UTF-8 are recorded", "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "printf 'hello\\n\\377\\376 x\\n\\000\\n{}\\nend'"});
  const std::string said = dialogue.rest();
  CHECK(said == std::string("hello\n\xFF\xFE x\n\0\n{}\nend", 19));
  CHECK(dialogue.wait() == child_exit{0, 0});
  CHECK(dialogue.transcript().child == said);
}

TEST_CASE("the signal that ended the child is passed on", "[process][capture]") {
  const int signal = GENERATE(SIGKILL, SIGTERM, SIGSEGV, SIGPIPE);
  captured_dialogue dialogue({"/bin/sh", "-c", "kill -" + std::to_string(signal) + " $$"});
  CHECK(dialogue.wait() == child_exit{0, signal});
  CHECK(dialogue.transcript().events.find("killed " + std::to_string(signal) + " ") !=
        std::string::npos);
}

TEST_CASE("when one side closes a pipe, the other side sees it at once", "[process][capture]") {
  SECTION("the daemon closes the input") {
    captured_dialogue dialogue({"/bin/sh", "-c", "cat; echo it ended; exec sleep 1000"});
    dialogue.close_input();
    CHECK(dialogue.read(9) == "it ended\n");
  }
  SECTION("the child closes its output") {
    captured_dialogue dialogue({"/bin/sh", "-c", "exec >&-; exec sleep 1000"});
    CHECK(dialogue.rest().empty());
  }
  SECTION("the child closes its input") {
    captured_dialogue dialogue({"/bin/sh", "-c", "exec <&-; exec sleep 1000"});
    CHECK(dialogue.await_broken_input());
  }
  SECTION("the daemon reads no more") {
    captured_dialogue dialogue({"/bin/sh", "-c", "exec yes"});
    CHECK(dialogue.read(4) == "y\ny\n");
    dialogue.close_output();
    CHECK(dialogue.wait() == child_exit{0, SIGPIPE});
  }
  SECTION("the child dies while the daemon writes") {
    captured_dialogue dialogue({"/bin/sh", "-c", "read line; exit 3"});
    dialogue.send(initialize + "\n");
    CHECK(dialogue.await_broken_input());
    CHECK(dialogue.wait() == child_exit{3, 0});
  }
}

TEST_CASE("the signals of a terminal or a container do not end it", "[process][capture][P32]") {
  captured_dialogue dialogue({"cat"});
  dialogue.send("{}\n");
  CHECK(dialogue.read(3) == "{}\n");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT}) dialogue.signal(signal);
  dialogue.send("{}\n");
  CHECK(dialogue.read(3) == "{}\n");
  dialogue.close_input();
  CHECK(dialogue.wait() == child_exit{0, 0});
}

TEST_CASE("the child has the same signals and descriptors as without it",
          "[process][capture][P5][P32]") {
  const std::vector<std::string> command{
      "/bin/sh", "-c", "grep -E 'SigIgn|SigBlk|SigCgt' /proc/self/status; ls /proc/$$/fd"};
  child_process direct(command);
  std::string without;
  char piece = 0;
  while (::read(direct.output.get(), &piece, 1) == 1) without += piece;
  REQUIRE(direct.wait() == child_exit{0, 0});
  for (const char* expected : {"SigBlk:", "SigIgn:", "SigCgt:", "\n0\n1\n", "\n2\n"}) {
    CHECK(without.find(expected) != std::string::npos);
  }
  captured_dialogue dialogue(command);
  CHECK(dialogue.rest() == without);
  CHECK(dialogue.wait() == child_exit{0, 0});
}

TEST_CASE("only its owner can read a transcript and the directory that was made for it",
          "[process][capture]") {
  namespace fs = std::filesystem;
  const auto others = fs::perms::group_all | fs::perms::others_all;
  const mode_t before = ::umask(0);
  const kclxx::test::temporary_folder folder;
  const fs::path directory = folder.path() / "captured";
  captured_dialogue dialogue({"/bin/sh", "-c", "umask; cat"},
                             child_process::error_output::inherited, 0, directory.string());
  ::umask(before);
  CHECK(dialogue.read(5) == "0000\n");  // the child's is left as it was
  dialogue.send(initialize + "\n");
  dialogue.close_input();
  CHECK(dialogue.wait() == child_exit{0, 0});
  CHECK((fs::status(directory).permissions() & others) == fs::perms::none);
  CHECK((fs::status(directory / dialogue.transcript().name).permissions() & others) ==
        fs::perms::none);
}

TEST_CASE("the child's arguments are not recorded", "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "exit 0", "--password=hunter2"});
  CHECK(dialogue.wait() == child_exit{0, 0});
  CHECK(dialogue.transcript().head.command == std::vector<std::string>{"/bin/sh"});
}

TEST_CASE("kill -9 of the capture is the end of the child's input", "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "cat; echo it ended >&2"},
                             child_process::error_output::piped);
  dialogue.send("{}\n");
  CHECK(dialogue.read(3) == "{}\n");
  dialogue.signal(SIGKILL);
  CHECK(dialogue.wait() == child_exit{0, SIGKILL});
  CHECK(dialogue.read_error(9) == "it ended\n");
}

TEST_CASE("killed at any moment, the transcript has every line that was answered",
          "[process][capture]") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::minstd_rand random(seed);
  const std::string victim = GENERATE("capture", "child");
  CAPTURE(victim);
  for (int run = 0; run < 10; ++run) {
    captured_dialogue dialogue({"/bin/sh", "-c", "echo $$; exec cat"});
    std::string pid;
    while (!pid.ends_with('\n')) pid += dialogue.read(1);
    std::vector<std::string> answered{initialize};
    const auto count = 1 + random() % 60;
    while (answered.size() < count) {
      answered.push_back("{\"x\":\"" + std::string(random() % 200'000, 'x') + "\"}");
    }
    for (const std::string& line : answered) {
      dialogue.send(line + "\n");
      REQUIRE((dialogue.read(line.size() + 1) == line + "\n"));
    }
    // Its echo, which nobody reads, fits the pipe.
    dialogue.send(std::string(random() % 60'000, 'y'));
    if (victim == "capture") {
      dialogue.signal(SIGKILL);
    } else {
      ::kill(std::stoi(pid), SIGKILL);
    }
    CHECK(dialogue.wait() == child_exit{0, SIGKILL});
    const auto transcript = dialogue.transcript();
    // The line that is incomplete is left out, or was being written.
    const bool may_be_cut =
        victim == "capture" && transcript.error.find("is cut off") != std::string::npos;
    CHECK((transcript.error.empty() || may_be_cut));
    CHECK((transcript.daemon_lines == answered));
    CHECK(transcript.events == (victim == "capture" ? "" : "end_of_output killed 9 "));
  }
}

TEST_CASE("a full disk is reported once, and the dialogue continues", "[process][capture]") {
  captured_dialogue dialogue({"cat"}, child_process::error_output::piped, 300'000);
  const std::string line = "{\"x\":\"" + std::string(100'000, 'x') + "\"}\n";
  for (int i = 0; i < 50; ++i) {
    dialogue.send(line);
    REQUIRE((dialogue.read(line.size()) == line));
  }
  dialogue.close_input();
  CHECK(dialogue.wait() == child_exit{0, 0});
  const std::string said = dialogue.rest_of_error();
  CAPTURE(said);
  CHECK(said.starts_with("kclxx capture: nothing more is recorded: "));
  CHECK(said.find("cannot be written: File too large; the dialogue continues\n") !=
        std::string::npos);
  CHECK(said.find('\n') == said.size() - 1);
  CHECK(dialogue.transcript().error.find("is cut off") != std::string::npos);
  CHECK(dialogue.transcript().order.starts_with("d"));
}

TEST_CASE("a mistake in the set-up is status 5, before the child is started",
          "[process][capture]") {
  SECTION("the directory") {
    captured_dialogue dialogue({"/bin/sh", "-c", "echo started"},
                               child_process::error_output::piped, 0, "/proc/nowhere");
    CHECK(dialogue.rest().empty());
    CHECK(dialogue.wait() == child_exit{5, 0});
    CHECK(dialogue.rest_of_error().starts_with("kclxx capture: "));
  }
  SECTION("the child; then no file is left") {
    captured_dialogue dialogue({"/no/such/program"}, child_process::error_output::piped);
    CHECK(dialogue.wait() == child_exit{5, 0});
    CHECK(dialogue.rest_of_error() ==
          "kclxx capture: /no/such/program cannot be started: No such file or directory\n");
    CHECK(dialogue.file_count() == 0);
  }
}

TEST_CASE("a shard's name cannot lead out of the directory", "[process][capture]") {
  captured_dialogue dialogue({"cat"});
  dialogue.send(R"({"action":"initialize","shardId":"../../etc/x y"})"
                "\n");
  dialogue.close_input();
  CHECK(dialogue.wait() == child_exit{0, 0});
  CHECK(dialogue.transcript().name.starts_with("______etc_x_y.20"));
  CHECK(dialogue.transcript().head.shard == "../../etc/x y");
}

TEST_CASE("a line of 20 MB passes; the daemon's is recorded whole, the child's with its beginning",
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
