// SPDX-License-Identifier: Apache-2.0
// `kclxx check`: each of its rules can be kept, and can be broken.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_daemon.hpp"
#include "support/text.hpp"

using kclxx::test::contains;
using kclxx::test::read_file;
using kclxx::test::scripted_daemon;
using words = std::vector<std::string>;

namespace {

const std::string broken_child = KCLXX_BROKEN_CHILD;
const std::string kclxx_child = KCLXX_TEST_CHILD;
// With a sanitizer, on a machine that does other things too, a line of 28 MB takes its time.
const std::string patient = "90";
constexpr std::chrono::seconds patience{100};

words tool(const words& arguments) {
  words command{KCLXX_TOOL, "check"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

struct outcome {
  int status;
  std::string output;
  std::string error;
};

outcome finish(scripted_daemon& running) {
  outcome made{0, running.rest(patience), {}};
  made.status = running.wait_exit();
  made.error = running.stderr_so_far();
  return made;
}

outcome check(const words& arguments) {
  scripted_daemon running(tool(arguments));
  return finish(running);
}

words all_rules() {
  std::istringstream lines(check({"--list"}).output);
  words names;
  for (std::string line; std::getline(lines, line);)
    names.push_back(line.substr(0, line.find('\t')));
  return names;
}

/// `poison` and `prints`: what this child obeys.
void must_pass_every_check(const words& child, const char* poison, const char* prints) {
  words arguments{"--timeout", patient, "--poison", poison, "--prints", prints, "--"};
  arguments.insert(arguments.end(), child.begin(), child.end());
  const outcome came = check(arguments);
  INFO(came.output);
  CHECK(came.status == 0);
  CHECK_FALSE(contains(came.output, "not ok"));
  CHECK_FALSE(contains(came.output, "# SKIP"));
  CHECK_FALSE(contains(came.output, "  hint: "));
}

}  // namespace

TEST_CASE("a child that keeps every rule passes every check, and none is skipped", "[check]") {
  must_pass_every_check({broken_child}, "poison", "print");
}

TEST_CASE("a child that does not answer initialize is tried once, not with every rule", "[check]") {
  const outcome came = check({"--timeout", "0.5", "--", "sleep", "1000"});
  INFO(came.output);
  CHECK(came.status == 1);
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (auto at = came.output.find(part); at != std::string::npos;
         at = came.output.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  CHECK(count("\nnot ok ") == 1);
  CHECK(contains(came.output, " - initialize: "));
  CHECK(contains(came.output, "no status for initialize: none within 500 ms"));
  CHECK(count("# SKIP not run, since the child does not answer initialize\n") ==
        all_rules().size() - 1);
}

TEST_CASE("a child of kclxx passes every check, and none is skipped", "[check]") {
  must_pass_every_check({kclxx_child, "fast_retry"}, "throw", "cout");
}

TEST_CASE("a child of kclxx passes every check in a process that all rules share", "[check]") {
  must_pass_every_check({KCLXX_SHARE, kclxx_child, "fast_retry"}, "throw", "cout");
}

TEST_CASE("a child that breaks a rule fails that rule's check", "[check]") {
  const words rules = all_rules();
  REQUIRE(rules.size() == 100);
  constexpr std::size_t at_once = 8;  // those that hang wait together
  for (std::size_t begin = 0; begin < rules.size(); begin += at_once) {
    std::vector<std::unique_ptr<scripted_daemon>> running;
    const std::size_t end = std::min(begin + at_once, rules.size());
    for (std::size_t i = begin; i < end; ++i) {
      running.push_back(std::make_unique<scripted_daemon>(
          tool({"--only", rules[i], "--timeout", "1", "--retry-limit", "1", "--poison", "poison",
                "--prints", "print", "--", broken_child, "--break", rules[i]})));
    }
    for (std::size_t i = begin; i < end; ++i) {
      const outcome came = finish(*running[i - begin]);
      INFO(rules[i] << "\n" << came.output << came.error);
      const bool is_hint = rules[i] == "newline-before";  // the daemon can live with it
      CHECK(came.status == (is_hint ? 0 : 1));
      CHECK(contains(came.output, (is_hint ? "\nok 1 - " : "\nnot ok 1 - ") + rules[i] + ": "));
      CHECK(contains(came.output, is_hint ? "\n  hint: \"" : "\n  seen: \""));
    }
  }
}

TEST_CASE("a mistake that is made after no rule breaks just the rules that it should", "[check]") {
  std::vector<std::pair<std::string, words>> faults{
      {"default SIGQUIT", {"sigquit"}},
      {"records up to 2 MiB", {"large-record"}},
      {"retries without end", {"shutdown-gives-up", "shard-end-gives-up"}},
      {"sequence numbers as double", {"long-sequence-number"}},
      {"buffer of 64 KiB",
       {"long-line-in-pieces", "many-records", "long-line", "large-record", "stray-print-in-bulk"}},
      {"exits after shutdownRequested", {"hand-off", "shutdown-requested-first", "exit-status"}}};
#ifdef KCLXX_IS_SANITIZED  // six times all rules would take a minute
  faults.resize(1);
#endif
  std::vector<std::unique_ptr<scripted_daemon>> running;
  for (const auto& [fault, rules] : faults) {
    running.push_back(std::make_unique<scripted_daemon>(
        tool({"--timeout", patient, "--retry-limit", "1", "--poison", "poison", "--prints", "print",
              "--", broken_child, "--fault", fault})));
  }
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const outcome came = finish(*running[i]);
    INFO(faults[i].first << "\n" << came.output << came.error);
    words broken;
    std::istringstream lines(came.output);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("not ok ")) continue;
      const std::size_t name = line.find(" - ") + 3;
      broken.push_back(line.substr(name, line.find(':') - name));
    }
    CHECK(broken == faults[i].second);
    CHECK(came.status == 1);
  }
}

TEST_CASE("a child that never checkpoints is not judged by how it would", "[check]") {
  const outcome came = check({"--only", "throttled-checkpoint", "--", "/bin/sh", "-c",
                              "while read -r line; do case $line in *initialize*) a=initialize ;;"
                              " *records*) a=processRecords ;; *) a=shutdownRequested ;; esac; "
                              "printf '\\n{\"action\":\"status\",\"responseFor\":\"%s\"}\\n' $a; "
                              "done"});
  INFO(came.output << came.error);
  CHECK(contains(came.output, "ok 1 - throttled-checkpoint: "));
  CHECK(contains(came.output, "# SKIP it asked for no checkpoint"));
  // With no rule judged that is no success.
  CHECK(came.status == 1);
  CHECK(contains(came.error, "no result: every rule was skipped (the first: it asked for "));
}

const std::string answer_initialize =
    R"(read -r line; printf '\n{"action":"status","responseFor":"initialize"}\n'; )";

TEST_CASE("a child that only answers initialize has no exit status to be judged by", "[check]") {
  const outcome came = check({"--only", "exit-status", "--timeout", "0.3", "--", "/bin/sh", "-c",
                              answer_initialize + "read -r line; exit 3"});
  INFO(came.output << came.error);
  CHECK(contains(came.output, "# SKIP it answers nothing but initialize"));
  CHECK(came.status == 1);
}

TEST_CASE("a child that writes without end does not hold up the check", "[check]") {
  const outcome came = check({"--only", "end-of-input-unanswered", "--timeout", "0.3", "--",
                              "/bin/sh", "-c", answer_initialize + "exec yes"});
  INFO(came.output << came.error);
  CHECK(contains(came.output, "neither a checkpoint nor a status"));
  CHECK(came.status == 1);
}

TEST_CASE("a failed check reports what the child wrote to stderr", "[check]") {
  const outcome came = check({"--only", "initialize", "--", "/bin/sh", "-c",
                              "read -r line; echo 'cannot start' >&2; exit 7"});
  CHECK(came.status == 1);
  CHECK(contains(came.output, "it left with exit status 7"));
  CHECK(contains(came.output, "    - \"cannot start\"\n"));
}

TEST_CASE("a child that outlives its input, or whose output somebody holds, is reported",
          "[check]") {
  const auto ends = [](const std::string& script) {
    return check(
        {"--only", "end-of-input-at-start", "--timeout", "0.3", "--", "/bin/sh", "-c", script});
  };
  CHECK(ends("exit 0").status == 0);
  CHECK(contains(ends("exec sleep 60").output, "it did not end, or its output was held open"));
  CHECK(contains(ends("sleep 3 & exit 0").output, "it did not end, or its output was held open"));
  CHECK(contains(ends("sleep 3 >/dev/null & exit 0").output, "or its output was held open"));
}

TEST_CASE("a signal that is ignored where the tool is started is not ignored in the child",
          "[check]") {
  const auto [rule, number] =
      GENERATE(table<std::string, std::string>({{"sigint", "2"}, {"sigquit", "3"}}));
  scripted_daemon running(
      {"/bin/sh", "-c",
       "trap '' HUP INT QUIT TERM; exec \"$0\" check --only \"$2\" -- \"$1\" --break \"$2\"",
       KCLXX_TOOL, broken_child, rule});
  const outcome came = finish(running);
  INFO(came.output);
  CHECK(contains(came.output, "not ok 1 - " + rule + ": "));
  CHECK(contains(came.output, "signal " + number + " ended it"));
}

TEST_CASE("the results are written as JUnit XML, too", "[check]") {
  const std::string file = std::string(KCLXX_TEST_DIRECTORY) + "/check-junit.xml";
  const outcome came = check({"--only", "initialize", "lease-lost", "stray-print", "--junit", file,
                              "--", broken_child, "--break", "lease-lost"});
  CHECK(came.status == 1);
  const std::string text = read_file(file);
  CHECK(contains(text, "tests=\"3\" failures=\"1\" skipped=\"1\""));
  CHECK(contains(text, "<testcase classname=\"kclxx.check\" name=\"lease-lost\""));
  CHECK(contains(text, "<failure message=\"no status for leaseLost: its output ended"));
  std::remove(file.c_str());
}

TEST_CASE("the results are written as a page and as a badge, too", "[check]") {
  const std::string folder = KCLXX_TEST_DIRECTORY;
  const std::string page = folder + "/check-page.html";
  const std::string badge = folder + "/check-badge.svg";
  const outcome came = check({"--only", "initialize", "lease-lost", "stray-print", "--report", page,
                              "--badge", badge, "--", broken_child, "--break", "lease-lost"});
  CHECK(came.status == 1);
  CHECK(contains(read_file(page), "<h2 class=\"bad\">lease-lost</h2>"));
  CHECK(contains(read_file(badge), "1 of 3 rules, 1 failed, 1 skipped</text>"));
  CHECK(contains(read_file(page), read_file(badge)));
  // A page is no badge: one does not replace the other.
  CHECK(check({"--badge", page, "--", broken_child}).status == 5);
  CHECK(contains(read_file(page), "<!DOCTYPE html>"));
  std::remove(page.c_str());
  std::remove(badge.c_str());
}

TEST_CASE(
    "a command line that makes no sense, and a child that cannot be started, have different "
    "statuses",
    "[check]") {
  CHECK(check({"--only", "initialise", "--", broken_child}).status == 2);
  CHECK(contains(check({"--only", "initialise", "--", broken_child}).error,
                 "there is no rule 'initialise'"));
  CHECK(check({"--only", "initialize", "--skip", "initialize", "--", broken_child}).status == 2);
  CHECK(check({"--timeout", "0", "--", broken_child}).status == 2);
  CHECK(check({}).status == 2);
  const outcome nowhere = check({"--", "/nowhere/child"});
  CHECK(nowhere.status == 5);
  CHECK(contains(nowhere.output, "\nBail out! /nowhere/child cannot be started: "));
  CHECK(check({"--junit", "/nowhere/file", "--", broken_child}).status == 5);
  CHECK(check({"--list"}).status == 0);
  CHECK(check({"--list", "--only", "one-status"}).output ==
        "one-status\tP24\teach action is answered by one status\n");
  CHECK(check({"--list", "--only", "two-statuses"}).status == 2);
}
