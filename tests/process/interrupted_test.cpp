// SPDX-License-Identifier: Apache-2.0
// A signal to `kclxx replay` or `kclxx check` alone, as a supervisor sends it.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "io/descriptor.hpp"
#include "support/catch.hpp"
#include "support/tool.hpp"
#include "tool/process/program.hpp"

using namespace kclxx::test;
using kclxx::tool::child_exit;
using kclxx::tool::child_process;
using words = std::vector<std::string>;

namespace {

struct ending {
  child_exit how;
  std::string error;
  pid_t child = -1;
};

/// The number that a process writes into the FIFO; -1 when the tool has ended and none was written.
pid_t number_in(const kclxx::io::descriptor& fifo, const child_process& tool) {
  const kclxx::io::descriptor ended = tool.ended();
  pollfd either[] = {{fifo.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
  while (::poll(either, 2, -1) == -1) {
  }
  char text[32] = "-1";  // written at once, or not at all
  return ::read(fifo.get(), text, sizeof text - 1) > 0 ? std::atoi(text) : -1;
}

/// Starts the tool with a script as its child, and signals the tool once a process has written its
/// number to $0, or the tool has ended; 0 sends no signal.
ending end_of(const words& arguments, const std::string& script, int signal) {
  const sandbox place;
  place.write("dialogue.jsonl",
              R"({"action":"initialize","shardId":"s","sequenceNumber":"TRIM_HORIZON"})"
              "\n");
  const std::string started = (place / "started").string();
  REQUIRE(::mkfifo(started.c_str(), 0600) == 0);
  // For reading and writing: it does not wait for a process that may be killed before it writes.
  const kclxx::io::descriptor fifo(::open(started.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  words command{KCLXX_TOOL};
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (arguments.front() == "replay") command.push_back((place / "dialogue.jsonl").string());
  command.insert(command.end(), {"--", "/bin/sh", "-c", script, started});
  child_process tool(command, child_process::error_output::piped);
  ending ending;
  ending.child = number_in(fifo, tool);
  tool.kill(signal);
  ending.error = read_all(tool.error.get());
  ending.how = tool.wait();
  return ending;
}

/// Interrupts such a command. Its child runs this script.
ending interrupt(const words& arguments, const std::string& child, int signal) {
  return end_of(arguments, "echo $$ > \"$0\"; " + child, signal);
}

/// The signal that ended a process, which became a child of this process; 0 when it exited.
int signal_that_ended(pid_t process) {
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a child that ignores the end of its input is killed when the tool is interrupted",
          "[replay][check]") {
  const auto arguments = GENERATE(words{"replay"}, words{"check", "--only", "initialize"});
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const ending ending = interrupt(arguments, "exec sleep 1000", signal);
  CHECK(ending.how == child_exit{0, signal});
  CHECK(ending.error == "kclxx: /bin/sh, process " + std::to_string(ending.child) +
                            ", did not leave after the end of its input, and is killed\n");
  CHECK(::kill(ending.child, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("a hanging child is killed with the shell script that started it", "[replay][check]") {
  auto arguments = GENERATE(words{"replay", "--timeout", "0.2"},
                            words{"check", "--timeout", "0.2", "--only", "initialize"});
  ending ending;
  // On a busy machine the script itself may be killed before it has started the child.
  for (const char* timeout : {"0.2", "2", "20"}) {
    arguments[2] = timeout;
    ending = end_of(arguments, "sh -c 'echo $$ > \"$0\"; exec sleep 1000' \"$0\"; exit 0", 0);
    if (ending.child != -1) break;
  }
  CHECK(ending.how.status != 0);
  REQUIRE(ending.child != -1);
  CHECK(::kill(ending.child, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("a second signal ends the tool at once, and its children", "[replay][check]") {
  const auto arguments = GENERATE(words{"replay"}, words{"check", "--only", "initialize"});
  const auto* const second = GENERATE("TERM", "INT");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const ending ending = interrupt(
      arguments,
      "trap '' INT TERM; cat >/dev/null; kill -" + std::string(second) + " $PPID; exec sleep 20",
      SIGINT);
  CHECK(ending.how == child_exit{0, *second == 'T' ? SIGTERM : SIGINT});
  CHECK(ending.error.empty());
  // The tool may have had the time to reap it.
  if (::kill(ending.child, 0) == 0) CHECK(signal_that_ended(ending.child) == SIGKILL);
}

TEST_CASE("what a child has left in a session of its own ends with the check", "[check]") {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // The child ends once the other one has its session.
  const ending ending = end_of({"check", "--only", "initialize"},
                               R"(mkfifo "$0.2"
                                  setsid sh -c 'echo $$ > "$0"; : > "$0.2"; exec sleep 20' "$0" \
                                    <&- >&- 2>&- & read -r nothing < "$0.2"; exit 0)",
                               0);
  CHECK(signal_that_ended(ending.child) == SIGKILL);
}

TEST_CASE(
    "a child that leaves at the end of its input is given the time when the tool is "
    "interrupted",
    "[replay][check]") {
  const auto arguments = GENERATE(words{"replay"}, words{"check", "--only", "initialize"});
  const ending ending = interrupt(arguments, "cat >/dev/null; echo it ended >&2", SIGTERM);
  CHECK(ending.how == child_exit{0, SIGTERM});
  CHECK(ending.error == (arguments.front() == "replay" ? "it ended\n" : ""));
  CHECK(::kill(ending.child, 0) == -1);
}

TEST_CASE("a closed stdin is not taken for one of the tool's own pipes", "[replay]") {
  const words command{"/bin/sh", "-c", "exec \"$0\" replay - -- /bin/cat <&-", KCLXX_TOOL};
  child_process tool(command, child_process::error_output::piped);
  const std::string said = read_all(tool.error.get());
  CHECK(tool.wait() == child_exit{5, 0});
  CHECK(said.empty());
}
