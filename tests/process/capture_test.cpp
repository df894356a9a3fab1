// SPDX-License-Identifier: Apache-2.0
// `kclxx capture` between a test that plays the daemon, and children of many kinds.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <poll.h>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "io/lines.hpp"
#include "process/child_under_test.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "tool/files.hpp"
#include "tool/process/program.hpp"
#include "tool/transcript/transcript.hpp"

using namespace kclxx::test;
using namespace std::chrono_literals;
using kclxx::tool::child_exit;
using kclxx::tool::child_process;

namespace {

/// A child under `kclxx capture`, with a directory of its own for the transcript. The test plays
/// the daemon. Each wait has a limit of 30 s.
class captured_dialogue {
 public:
  using error_output = child_process::error_output;

  /// `file_limit`: how many bytes a file of the capture may have; 0: any number. `directory`: that
  /// of the transcript; empty: a new one, which is removed at the end.
  explicit captured_dialogue(const std::vector<std::string>& child,
                             error_output error = error_output::inherited,
                             std::size_t file_limit = 0, const std::string& directory = "")
      : directory_(directory.empty() ? own_directory_.path() : std::filesystem::path(directory)) {
    std::signal(SIGPIPE, [](int) {});  // not ignored: that would be inherited
    // setsid gives the capture a process group of its own.
    std::vector<std::string> command{"setsid",   KCLXX_TOOL,          "capture",
                                     "--output", directory_.string(), "--"};
    if (file_limit > 0) {
      command = {"setsid",   "/bin/sh",
                 "-c",       "ulimit -f $1; shift; exec \"$@\"",
                 "sh",       std::to_string(file_limit / 512),
                 KCLXX_TOOL, "capture",
                 "--output", directory_.string(),
                 "--"};
    }
    command.insert(command.end(), child.begin(), child.end());
    capture_.emplace(command, error);
  }
  ~captured_dialogue() {
    ::kill(-capture_->pid(), SIGKILL);  // its group, which the child belongs to
    capture_.reset();
  }
  captured_dialogue(const captured_dialogue&) = delete;
  captured_dialogue& operator=(const captured_dialogue&) = delete;

  void send(std::string_view bytes) {
    if (kclxx::io::write_all(capture_->input.get(), bytes))
      throw std::runtime_error("nobody reads");
  }
  void close_input() { capture_->input.close(); }
  void close_output() { capture_->output.close(); }
  /// Reads so many bytes, or up to the end.
  std::string read(std::size_t size) { return read_from(capture_->output.get(), size); }
  std::string rest() { return read(std::string::npos); }
  std::string read_error(std::size_t size) { return read_from(capture_->error.get(), size); }
  std::string rest_of_error() { return read_error(std::string::npos); }
  /// Waits until the capture has closed the input. False: it has not.
  [[nodiscard]] bool await_broken_input() const {
    pollfd broken{capture_->input.get(), 0, 0};
    return ::poll(&broken, 1, limit_milliseconds) == 1 && (broken.revents & POLLERR) != 0;
  }

  void signal(int number) { capture_->kill(number); }
  child_exit wait() {
    using namespace std::chrono_literals;
    const auto how = capture_->wait_until(child_process::clock::now() + 30s);
    if (!how) throw std::runtime_error("kclxx capture does not end");
    return *how;
  }

  /// The content of the transcript.
  struct recorded {
    std::string name;
    kclxx::transcript::header head;
    std::string daemon;  ///< the daemon's bytes without the last newline
    std::string child;   ///< the child's bytes without the last newline
    std::vector<std::string> daemon_lines;
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
  [[nodiscard]] std::size_t file_count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  /// The most memory that the capture has used so far, in KiB.
  [[nodiscard]] std::size_t peak_memory() const {
    std::ifstream status("/proc/" + std::to_string(capture_->pid()) + "/status");
    for (std::string word; status >> word;) {
      std::size_t size = 0;
      if (word == "VmHWM:" && status >> size) return size;
    }
    throw std::runtime_error("the memory is unknown");
  }

 private:
  static constexpr int limit_milliseconds = 30'000;

  // Adds a newline before each line but the first: the transcript does not tell whether the last
  // line had one.
  static void append(std::string& bytes, const kclxx::transcript::entry& entry,
                     std::string& pending) {
    bytes += pending;
    pending = "\n";
    bytes += entry.line;
  }
  static std::string read_from(int fd, std::size_t size) {
    std::string text;
    std::vector<char> piece(std::size_t{1} << 18);
    while (text.size() < size) {
      pollfd readable{fd, POLLIN, 0};
      if (::poll(&readable, 1, limit_milliseconds) != 1)
        throw std::runtime_error("nothing to read: " + text);
      const ssize_t n = ::read(fd, piece.data(), std::min(piece.size(), size - text.size()));
      if (n <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

  temporary_folder own_directory_;
  std::filesystem::path directory_;
  std::optional<child_process> capture_;
};

const std::string initialize =
    R"({"action":"initialize","shardId":"shardId-000000000007","sequenceNumber":"TRIM_HORIZON"})";

}  // namespace

TEST_CASE("both directions pass unchanged, however they are cut", "[process][capture]") {
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
  const std::string without = read_all(direct.output.get());
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
