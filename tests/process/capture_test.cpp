// SPDX-License-Identifier: Apache-2.0
// `kclxx capture` between a test that plays the daemon, and children of many kinds.
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/temporary_folder.hpp"
#include "tool/files.hpp"
#include "tool/transcript/transcript.hpp"

using namespace kclxx::test;
using words = std::vector<std::string>;

namespace {

/// The directory of a transcript: `name`, or if that is empty a new one, which is removed at the
/// end.
class transcript_directory {
 public:
  explicit transcript_directory(const std::string& name) : directory_(name) {
    if (name.empty()) directory_ = own_directory_.path();
  }

  /// The content of the transcript.
  struct recorded {
    std::string name;
    kclxx::transcript::header head;
    std::string daemon;  ///< the daemon's bytes without the last newline
    std::string child;   ///< the child's bytes without the last newline
    words daemon_lines;
    std::string events;          ///< "end_of_input exit 0 "
    std::string order;           ///< a "d" or a "c" for each line
    std::string error;           ///< the error of the reader, if there was one
    std::size_t cut_length = 0;  ///< the length of the last line that was too long to be recorded
  };
  [[nodiscard]] recorded transcript() const {
    recorded result;
    try {
      for (const auto& file : std::filesystem::directory_iterator(directory_)) {
        result.name = file.path().filename().string();
      }
      kclxx::tool::input_file source((directory_ / result.name).string());
      kclxx::transcript::reader reader(source, result.name);
      result.head = reader.head().value();
      std::string daemon_pending;
      std::string child_pending;
      kclxx::transcript::entry entry;
      while (reader.next(entry)) {
        switch (entry.kind) {
          case kclxx::transcript::entry_kind::daemon_line:
            result.order += 'd';
            append(result.daemon, entry, daemon_pending);
            result.daemon_lines.emplace_back(entry.line);
            break;
          case kclxx::transcript::entry_kind::child_line:
            result.order += 'c';
            append(result.child, entry, child_pending);
            if (entry.whole_length > 0) result.cut_length = entry.whole_length;
            break;
          case kclxx::transcript::entry_kind::end_of_input:
            result.events += "end_of_input ";
            break;
          case kclxx::transcript::entry_kind::end_of_output:
            result.events += "end_of_output ";
            break;
          case kclxx::transcript::entry_kind::exit:
            result.events += "exit " + std::to_string(entry.number) + " ";
            break;
          case kclxx::transcript::entry_kind::killed:
            result.events += "killed " + std::to_string(entry.number) + " ";
        }
      }
    } catch (const kclxx::transcript::transcript_error& error) {
      result.error = error.what();
    }
    return result;
  }
  [[nodiscard]] std::string directory() const { return directory_.string(); }

 private:
  // Adds a newline before each line but the first: the transcript does not tell whether the last
  // line had one.
  static void append(std::string& bytes, const kclxx::transcript::entry& entry,
                     std::string& pending) {
    bytes += pending;
    pending = "\n";
    bytes += entry.line;
  }

  temporary_folder own_directory_;
  std::filesystem::path directory_;
};

/// A child under `kclxx capture`. The test plays the daemon.
class captured_dialogue : public transcript_directory, public scripted_daemon {
 public:
  /// `file_limit`: how many bytes a file of the capture may have; 0: any number.
  explicit captured_dialogue(const words& child, std::size_t file_limit = 0,
                             const std::string& directory = "")
      : transcript_directory(directory),
        scripted_daemon(command(child, file_limit, this->directory())) {}
  ~captured_dialogue() { signal_group(SIGKILL); }  // the child, too
  captured_dialogue(const captured_dialogue&) = delete;
  captured_dialogue& operator=(const captured_dialogue&) = delete;

 private:
  static words command(const words& child, std::size_t file_limit, const std::string& directory) {
    words result{KCLXX_TOOL, "capture", "--output", directory, "--"};
    if (file_limit > 0) {
      result.insert(result.begin(), {"/bin/sh", "-c", "ulimit -f $1; shift; exec \"$@\"", "sh",
                                     std::to_string(file_limit / 512)});
    }
    result.insert(result.end(), child.begin(), child.end());
    return result;
  }
};

const std::string initialize =
    R"({"action":"initialize","shardId":"shardId-000000000007","sequenceNumber":"TRIM_HORIZON"})";

}  // namespace

TEST_CASE("both directions pass unchanged, however they are cut, and no argument is recorded",
          "[process][capture]") {
  const auto piece = GENERATE(as<std::size_t>(), 1, 3, 8192, 300'001);
  const std::size_t size = piece == 1 ? 3'000 : 700'000;
  const std::size_t long_line = piece > 3 ? 500'000 : 10;
  std::string text = initialize + "\n";
  // A stray print, bytes that are not UTF-8, and a long line that is no object.
  text += std::string("hello\n\xFF\xFE x\n\0\n", 13);
  text += "{\"x\":\"" + std::string(long_line, 'x') + "\" oops\n";
  std::minstd_rand random(7);
  while (text.size() < size) {
    text += "{\"x\":\"";
    for (auto n = random() % 5000; n > 0; --n) text += static_cast<char>('a' + random() % 26);
    text += random() % 3 == 0 ? "\" oops\n" : "\"}\n";
    if (random() % 5 == 0) text += "\n";
  }
  text += "{\"unfinished\":" + std::string(long_line, ' ');
  captured_dialogue dialogue({"cat", "-u"});
  std::thread writer([&] {
    for (std::size_t at = 0; at < text.size(); at += piece) {
      dialogue.send_raw(std::string_view(text).substr(at, piece));
    }
    dialogue.close_input();
  });
  CHECK((dialogue.rest() == text));
  writer.join();
  CHECK(dialogue.wait_exit() == 0);
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  CHECK((transcript.daemon == text));
  CHECK((transcript.child == text));
  CHECK(transcript.events == "end_of_input end_of_output exit 0 ");
  CHECK(transcript.head.shard == "shardId-000000000007");
  CHECK(transcript.head.command == words{"cat"});
  CHECK(transcript.name.starts_with("shardId-000000000007.20"));
}

TEST_CASE("under capture the daemon is asked to stop, and not the capture",
          "[process][capture][worker_stop]") {
  const termination_count counted;
  captured_dialogue dialogue({child});
  start(dialogue);
  dialogue.records({"stop the worker"});
  dialogue.expect_checkpoint("1");
  dialogue.answer();
  dialogue.expect_status("processRecords");
  dialogue.close_input();
  dialogue.await_stderr(", is asked to stop");
  CHECK(dialogue.wait_exit() < 1000);
  CHECK(counted.await_first() == 1);
}

TEST_CASE("under replay no process is asked to stop", "[process][replay][worker_stop]") {
  const termination_count counted;
  const temporary_folder folder;
  const std::string file = (folder.path() / "dialogue.jsonl").string();
  std::ofstream(file) << initialize << '\n' << records_line({"stop the worker"}) << '\n';
  scripted_daemon replay({KCLXX_TOOL, "replay", file, "--", child});
  replay.await_stderr("no daemon runs this program");
  CHECK_THAT(replay.rest(), Contains("\nok\n"));
  CHECK(replay.wait_exit() == 0);
  CHECK(counted.get() == 0);
}

TEST_CASE("the beginning of a line is passed on at once", "[process][capture]") {
  captured_dialogue dialogue({"cat"});
  dialogue.send_raw("{\"action\":");
  CHECK(dialogue.read(10) == "{\"action\":");  // not held until its newline
  dialogue.send_raw("1}\n");
  CHECK(dialogue.read(3) == "1}\n");
}

TEST_CASE("an answer is recorded after the line that it answers", "[process][capture]") {
  captured_dialogue dialogue({"cat"});
  for (int i = 0; i < 300; ++i) {
    const std::string line = "{\"n\":" + std::to_string(i) + ",\"x\":\"" +
                             std::string(static_cast<std::size_t>(i) * 700, 'x') + "\"}\n";
    dialogue.send_raw(line);
    REQUIRE((dialogue.read(line.size()) == line));
  }
  dialogue.close_input();
  CHECK(dialogue.wait_exit() == 0);
  const std::string order = dialogue.transcript().order;
  std::string expected;
  for (int i = 0; i < 300; ++i) expected += "dc";
  CHECK(order.substr(0, 600) == expected);
}

TEST_CASE("the signal that ended the child is passed on", "[process][capture]") {
  const int signal = GENERATE(SIGKILL, SIGTERM, SIGSEGV, SIGPIPE);
  captured_dialogue dialogue({"/bin/sh", "-c", "kill -" + std::to_string(signal) + " $$"});
  CHECK(dialogue.wait_exit() == 1000 + signal);
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
    CHECK(dialogue.wait_exit() == 1000 + SIGPIPE);
  }
  SECTION("the child dies while the daemon writes") {
    captured_dialogue dialogue({"/bin/sh", "-c", "read line; exit 3"});
    dialogue.initialize();
    CHECK(dialogue.await_broken_input());
    CHECK(dialogue.wait_exit() == 3);
  }
}

TEST_CASE("the signals of a terminal or a container do not end it", "[process][capture][P32]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "trap '' INT TERM HUP PIPE QUIT; exec cat"});
  dialogue.send("{}");
  CHECK(dialogue.read(3) == "{}\n");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT})
    dialogue.signal_group(signal);
  dialogue.send("{}");
  CHECK(dialogue.read(3) == "{}\n");
  dialogue.close_input();
  CHECK(dialogue.wait_exit() == 0);
}

TEST_CASE("the child has the same signals and descriptors as without it",
          "[process][capture][P5][P32]") {
  // Seven digits are the signals 1 to 28. A program that capture has started ignores 32 and 33,
  // which posix_spawn(3) uses.
  const words command{"/bin/sh", "-c",
                      R"(sed -nE 's/^(Sig(Ign|Blk|Cgt):).*(.{7})$/\1 \3/p' /proc/self/status
                         ls /proc/$$/fd)"};
  scripted_daemon direct(command);
  const std::string without = direct.rest();
  REQUIRE(direct.wait_exit() == 0);
  for (const char* expected : {"SigBlk:", "SigIgn:", "SigCgt:", "\n0\n1\n", "\n2\n"}) {
    CHECK(without.find(expected) != std::string::npos);
  }
  captured_dialogue dialogue(command);
  CHECK(dialogue.rest() == without);
  CHECK(dialogue.wait_exit() == 0);
}

TEST_CASE("only its owner can read a transcript and the directory that was made for it",
          "[process][capture]") {
  namespace fs = std::filesystem;
  const auto others = fs::perms::group_all | fs::perms::others_all;
  const mode_t before = ::umask(0);
  const kclxx::test::temporary_folder folder;
  const fs::path directory = folder.path() / "captured";
  captured_dialogue dialogue({"/bin/sh", "-c", "umask; cat"}, 0, directory.string());
  ::umask(before);
  CHECK(dialogue.read(5) == "0000\n");  // the child's is left as it was
  dialogue.initialize();
  dialogue.close_input();
  CHECK(dialogue.wait_exit() == 0);
  CHECK((fs::status(directory).permissions() & others) == fs::perms::none);
  CHECK((fs::status(directory / dialogue.transcript().name).permissions() & others) ==
        fs::perms::none);
}

TEST_CASE("kill -9 of the capture is the end of the child's input", "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "cat; echo it ended >&2"});
  dialogue.send("{}");
  CHECK(dialogue.read(3) == "{}\n");
  dialogue.kill();
  dialogue.await_stderr("it ended");
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
    const pid_t child = std::stoi(dialogue.next_line());
    words answered{initialize};
    const auto count = 1 + random() % 60;
    while (answered.size() < count) {
      answered.push_back("{\"x\":\"" + std::string(random() % 200'000, 'x') + "\"}");
    }
    for (const std::string& line : answered) {
      dialogue.send(line);
      REQUIRE((dialogue.read(line.size() + 1) == line + "\n"));
    }
    // Its echo, which nobody reads, fits the pipe.
    dialogue.send_raw(std::string(random() % 60'000, 'y'));
    if (victim == "capture") {
      dialogue.kill();
    } else {
      ::kill(child, SIGKILL);
      CHECK(dialogue.wait_exit() == 1000 + SIGKILL);
    }
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
  captured_dialogue dialogue({"cat"}, 300'000);
  const std::string line = "{\"x\":\"" + std::string(100'000, 'x') + "\"}\n";
  for (int i = 0; i < 50; ++i) {
    dialogue.send_raw(line);
    REQUIRE((dialogue.read(line.size()) == line));
  }
  dialogue.close_input();
  CHECK(dialogue.wait_exit() == 0);
  const std::string said = dialogue.stderr_so_far();
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
    captured_dialogue dialogue({"/bin/sh", "-c", "echo started"}, 0, "/proc/nowhere");
    CHECK(dialogue.rest().empty());
    CHECK(dialogue.wait_exit() == 5);
    CHECK(dialogue.stderr_so_far().starts_with("kclxx capture: "));
  }
  SECTION("the child; then no file is left") {
    captured_dialogue dialogue({"/no/such/program"});
    CHECK(dialogue.wait_exit() == 5);
    CHECK(dialogue.stderr_so_far() ==
          "kclxx capture: /no/such/program cannot be started: No such file or directory\n");
    CHECK(count_of(dialogue.directory()) == 0);
  }
}

TEST_CASE("a shard's name cannot lead out of the directory", "[process][capture]") {
  captured_dialogue dialogue({"cat"});
  dialogue.send(R"({"action":"initialize","shardId":"../../etc/x y"})");
  dialogue.close_input();
  CHECK(dialogue.wait_exit() == 0);
  CHECK(dialogue.transcript().name.starts_with("______etc_x_y.20"));
  CHECK(dialogue.transcript().head.shard == "../../etc/x y");
}

TEST_CASE(
    "a line of 20 MB passes and is recorded, the daemon's whole, the child's with its beginning",
    "[process][capture]") {
  const std::string line = "{\"x\":\"" + std::string(20'000'000, 'x') + "\"}\n";
  captured_dialogue dialogue({"cat"});
  std::thread writer([&] {
    dialogue.send_raw(line);
    dialogue.close_input();
  });
  CHECK((dialogue.rest() == line));
  writer.join();
  CHECK(dialogue.wait_exit() == 0);
  const auto transcript = dialogue.transcript();
  CHECK((transcript.daemon + "\n" == line));
  CHECK((transcript.child == line.substr(0, 1 << 20)));
  CHECK(transcript.cut_length == line.size() - 1);
}

TEST_CASE("output without a newline takes little memory, and its end and exit are recorded",
          "[process][capture]") {
  captured_dialogue dialogue({"/bin/sh", "-c", "head -c 200000000 /dev/zero; read line; exit 4"});
  REQUIRE(dialogue.read(200'000'000).size() == 200'000'000);
  CHECK(dialogue.peak_resident_kib() < 150'000);
  dialogue.send("{}");
  CHECK(dialogue.wait_exit() == 4);
  CHECK(dialogue.stderr_so_far().empty());
  const auto transcript = dialogue.transcript();
  CHECK(transcript.error.empty());
  CHECK((transcript.child == std::string(1 << 20, '\0')));
  CHECK(transcript.cut_length == 200'000'000);
  CHECK(transcript.events == "end_of_output exit 4 ");
}
