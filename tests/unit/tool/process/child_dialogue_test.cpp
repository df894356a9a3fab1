// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_dialogue.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace kclxx::tool;
using namespace std::chrono_literals;
using event_kind = child_dialogue::event_kind;

namespace {

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

constexpr auto keeps_errors = child_dialogue::error_output::kept;

child_dialogue::clock::time_point soon() { return child_dialogue::clock::now() + 20s; }

/// The next line, past what else happens.
std::string next_line(child_dialogue& dialogue) {
  for (;;) {
    const auto event = dialogue.next(soon());
    if (event.what == event_kind::line) return std::string(event.line);
    REQUIRE((event.what == event_kind::sent));
  }
}

}  // namespace

TEST_CASE("lines go both ways, and the child's exit is there in the end", "[tool][dialogue]") {
  child_dialogue dialogue(shell("cat; exit 3"), keeps_errors);
  const auto write = [&](std::string_view text, std::string_view end) {
    dialogue.send(text, end);
    CHECK(dialogue.next(soon(), child_dialogue::output::stays_unread).what == event_kind::sent);
  };
  write("one", "\n");
  write("", "\n");
  write("half", "");
  CHECK(next_line(dialogue) == "one");
  CHECK(next_line(dialogue).empty());
  dialogue.close_input();
  CHECK(next_line(dialogue) == "half");  // without a newline
  CHECK(dialogue.next(soon()).what == event_kind::end_of_output);
  CHECK(dialogue.next(soon()).what == event_kind::end_of_output);
  CHECK(dialogue.wait_exit(soon()) == child_exit{3, 0});
}

TEST_CASE("a carriage return ends a line, as for the daemon, and with a newline it ends one",
          "[tool][dialogue]") {
  child_dialogue dialogue(
      shell("printf 'a\\rb\\r\\n\\r\\nc\\r'; read -r line; printf '\\nd\\r'; exec cat"),
      keeps_errors);
  for (const char* line : {"a", "b", "", "c"}) CHECK(next_line(dialogue) == line);
  dialogue.send("");
  CHECK(next_line(dialogue) == "d");
}

TEST_CASE("20 MB go out while 20 MB come in, and neither side blocks the other",
          "[tool][dialogue]") {
  // The child writes all of its own line before it reads anything.
  child_dialogue dialogue(
      shell("head -c 20000000 /dev/zero | tr '\\0' x; echo; head -n 1 | wc -c; echo end"),
      keeps_errors);
  const std::string line(20'000'000, 'y');
  dialogue.send(line);
  bool was_sent = false;
  std::vector<std::string> short_lines;
  std::size_t kept = 0;
  while (short_lines.size() < 2) {
    const auto event = dialogue.next(soon());
    REQUIRE((event.what == event_kind::line || event.what == event_kind::sent));
    if (event.what == event_kind::sent) {
      was_sent = true;
    } else if (event.line.size() > 100) {
      kept = event.line.size();
    } else {
      short_lines.emplace_back(event.line);
    }
  }
  CHECK(was_sent);
  CHECK(kept >= child_dialogue::max_line);
  CHECK(kept < 2 * child_dialogue::max_line);
  CHECK(short_lines == std::vector<std::string>{"20000001", "end"});
}

TEST_CASE("a child that is silent is waited for until the deadline", "[tool][dialogue]") {
  child_dialogue dialogue(shell("exec sleep 1000"), keeps_errors);
  const auto begin = child_dialogue::clock::now();
  CHECK(dialogue.next(begin + 50ms).what == event_kind::timed_out);
  CHECK(child_dialogue::clock::now() - begin >= 50ms);
  dialogue.kill(SIGKILL);
  CHECK(dialogue.next(soon()).what == event_kind::end_of_output);
  CHECK(dialogue.wait_exit(soon()) == child_exit{0, SIGKILL});
}

TEST_CASE("a child that does not read any more is distinguished from one that left",
          "[tool][dialogue]") {
  child_dialogue dialogue(shell("exec <&-; echo closed; exec sleep 1000"), keeps_errors);
  CHECK(next_line(dialogue) == "closed");
  const std::string line(5'000'000, 'y');
  dialogue.send(line);
  CHECK(dialogue.next(soon()).what == event_kind::input_broken);
  dialogue.send("dropped");
  CHECK(dialogue.next(soon()).what == event_kind::input_broken);
}

TEST_CASE("what stays unread waits in the pipe, also while the child reads nothing",
          "[tool][dialogue]") {
  child_dialogue dialogue(shell("echo before; exec sleep 1000"), keeps_errors);
  const std::string line(5'000'000, 'y');
  dialogue.send(line);
  const auto deadline = child_dialogue::clock::now() + 300ms;
  CHECK(dialogue.next(deadline, child_dialogue::output::stays_unread).what ==
        event_kind::timed_out);
  CHECK(next_line(dialogue) == "before");
}

TEST_CASE("text of the child without its newline is known at the deadline", "[tool][dialogue]") {
  child_dialogue dialogue(shell("printf 'one\\nhalf'; exec sleep 1000"), keeps_errors);
  CHECK(next_line(dialogue) == "one");
  const auto event = dialogue.next(child_dialogue::clock::now() + 300ms);
  CHECK(event.what == event_kind::timed_out);
  CHECK(event.line == "half");
}

TEST_CASE("the end of stderr is kept, and holds up the child's end while somebody holds it",
          "[tool][dialogue]") {
  child_dialogue dialogue(shell("seq 500 >&2; echo no >&2; sleep 1000 >&- & exec >&-"),
                          keeps_errors);
  CHECK(dialogue.next(soon()).what == event_kind::end_of_output);
  CHECK_FALSE(dialogue.wait_exit(child_dialogue::clock::now() + 300ms));
  const std::string error = dialogue.error_text();
  CHECK(error.size() <= 2000);
  CHECK(error.ends_with("\n499\n500\nno\n"));
  dialogue.kill(SIGKILL);
  CHECK(dialogue.wait_exit(soon()) == child_exit{0, 0});
}
