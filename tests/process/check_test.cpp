// SPDX-License-Identifier: Apache-2.0
// `kclxx check`: each of its rules can be kept, and can be broken.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_daemon.hpp"
#include "support/text.hpp"

using namespace kclxx::test;
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
  outcome result{0, running.rest(patience), {}};
  result.status = running.wait_exit();
  result.error = running.stderr_so_far();
  return result;
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
  const outcome result = check(arguments);
  INFO(result.output);
  CHECK(result.status == 0);
  CHECK_FALSE(contains(result.output, "not ok"));
  CHECK_FALSE(contains(result.output, "# SKIP"));
  CHECK_FALSE(contains(result.output, "  hint: "));
}

}  // namespace

TEST_CASE("a child that keeps every rule passes every check, and none is skipped", "[check]") {
  must_pass_every_check({broken_child}, "poison", "print");
}

TEST_CASE("a child that does not answer initialize is tried once, not with every rule", "[check]") {
  const auto [child, seen] = GENERATE(table<words, std::string>(
      {{{"sleep", "1000"}, "none within 500 ms (--timeout)"},
       {{"/bin/sh", "-c", "exit 3"}, "it left with exit status 3"},
       {{"/bin/sh", "-c", "echo 'no such module' >&2; exit 3"}, "    - \"no such module\"\n"},
       {{broken_child, "--break", "lines-complete"}, "without a newline at its end: "}}));
  words arguments{"--timeout", "0.5", "--"};
  arguments.insert(arguments.end(), child.begin(), child.end());
  const outcome result = check(arguments);
  INFO(result.output);
  CHECK(result.status == 1);
  CHECK(count(result.output, "\nnot ok ") == 1);
  CHECK(contains(result.output, "\nnot ok 1 - initialize: "));
  CHECK(contains(result.output, seen));
  CHECK(count(result.output, "# SKIP not run, since the child does not answer initialize\n") + 1 ==
        static_cast<int>(all_rules().size()));
}

TEST_CASE("a child of kclxx passes every check, and none is skipped", "[check]") {
  must_pass_every_check({kclxx_child, "fast_retry"}, "throw", "cout");
}

TEST_CASE("a child of kclxx passes every check in a process that all rules share", "[check]") {
  must_pass_every_check({KCLXX_SHARE, kclxx_child, "fast_retry"}, "throw", "cout");
}

namespace {

struct broken_rule {
  std::string name;
  std::string way;
};

/// Each rule with each way of broken_child to break it. A rule that is not named here has the one
/// of its own name.
std::vector<broken_rule> all_broken_rules() {
  const std::map<std::string, words> ways{
      {"nothing-between", {"nothing-between", "timer-between"}},
      {"old-shutdown", {"old-terminate", "old-shard-end", "old-zombie", "old-lease-lost"}},
      {"null-values",
       {"null-data", "null-partition-key", "null-arrival-time", "null-millis-behind"}},
      {"only-messages", {"only-messages", "only-messages-on-error"}},
      {"checkpoint-rises", {"checkpoint-rises", "compares-text"}},
      {"throttled-checkpoint", {"throttled-checkpoint", "throttled-and-dropped"}},
      {"throttled-at-shutdown", {"throttled-at-shutdown", "shutdown-dependency"}},
      {"poison-exit", {"poison-exit", "poison-stays"}},
      {"poison-checkpoint", {"poison-checkpoint", "poison-at-shutdown"}},
      {"checkpoint-sub-sequence", {"checkpoint-sub-sequence", "greatest-sub-sequence"}},
      {"checkpoint-in-aggregate", {"checkpoint-in-aggregate", "aggregate-is-known"}},
      {"shard-end-throttled", {"shard-end-throttled", "shard-end-dependency"}},
      {"shard-end-failed", {"shard-end-failed", "shard-end-unknown"}},
      {"shard-end-gives-up", {"shard-end-gives-up", "shard-end-dependency"}},
      {"end-of-input", {"end-of-input", "end-of-input-at-start", "end-of-input-after-ending"}},
      {"end-of-input-in-action", {"end-of-input-in-action", "end-of-input-in-line"}},
      {"signals",
       {"sigterm", "sigint", "sighup", "sigquit", "sigterm-before-initialize",
        "sigterm-in-action"}}};
  std::vector<broken_rule> result;
  for (const std::string& rule : all_rules()) {
    const auto found = ways.find(rule);
    for (const std::string& way : found == ways.end() ? words{rule} : found->second) {
      result.push_back({rule, way});
    }
  }
  return result;
}

}  // namespace

TEST_CASE("a child that breaks a rule fails that rule's check", "[check]") {
  const auto broken = all_broken_rules();
  constexpr std::size_t at_once = 8;  // those that hang wait together
  for (std::size_t begin = 0; begin < broken.size(); begin += at_once) {
    std::vector<std::unique_ptr<scripted_daemon>> running;
    const std::size_t end = std::min(begin + at_once, broken.size());
    for (std::size_t i = begin; i < end; ++i) {
      running.push_back(std::make_unique<scripted_daemon>(
          tool({"--only", broken[i].name, "--timeout", "1", "--retry-limit", "1", "--poison",
                "poison", "--prints", "print", "--", broken_child, "--break", broken[i].way})));
    }
    for (std::size_t i = begin; i < end; ++i) {
      const auto& [name, way] = broken[i];
      const outcome result = finish(*running[i - begin]);
      INFO(name << ", " << way << "\n" << result.output << result.error);
      const bool is_hint = name == "newline-before";  // the daemon can live with it
      CHECK(result.status == (is_hint ? 0 : 1));
      CHECK(contains(result.output, (is_hint ? "\nok 1 - " : "\nnot ok 1 - ") + name + ": "));
      CHECK(contains(result.output, is_hint ? "\n  hint: \"" : "\n  seen: \""));
    }
  }
}

TEST_CASE("a child that understands the payloads of --data alone is given no others", "[check]") {
  const std::string file = std::string(KCLXX_TEST_DIRECTORY) + "/check-data.jsonl";
  const auto run = [&](words options) {
    options.insert(options.begin(),
                   {"--timeout", patient, "--poison", "poison", "--prints", "print"});
    options.insert(options.end(), {"--", broken_child, "--fault", "understands JSON alone"});
    return check(options);
  };
  std::ofstream(file) << "{\"views\":1}\n\n{\"views\":2}\n";
  const outcome result = run({"--data", file});
  INFO(result.output << result.error);
  CHECK(result.status == 0);
  CHECK_FALSE(contains(result.output, "# SKIP"));
  CHECK(contains(run({"--only", "one-record"}).output,
                 "the data was \\\"payload\\\": --data FILE gives a file of what the child "
                 "understands"));
  CHECK(check({"--data", "/nowhere/file", "--", broken_child}).status == 5);
  std::remove(file.c_str());
}

TEST_CASE("a mistake that was not made for a rule breaks just the rules that it should",
          "[check]") {
  std::vector<std::pair<std::string, words>> faults{
      {"default SIGQUIT", {"signals"}},
      {"records up to 2 MiB", {"large-record"}},
      {"retries without end", {"shutdown-gives-up", "shard-end-gives-up"}},
      {"sequence numbers as double", {"long-sequence-number"}},
      {"asks for None in an empty batch", {"empty-batch"}},
      {"fails later", {}},
      {"buffer of 64 KiB",
       {"many-records", "long-line", "large-record", "long-line-in-pieces", "unread-answers",
        "stray-print-in-bulk"}},
      {"exits after shutdownRequested", {"hand-off", "shutdown-requested-first", "exit-status"}}};
#ifdef KCLXX_IS_SANITIZED  // six times all rules would take a minute
  faults.resize(1);
#endif
  std::vector<std::unique_ptr<scripted_daemon>> running;
  for (const auto& [fault, rules] : faults) {
    // One rule waits for as long as the child may take.
    const std::string timeout = fault == "fails later" ? "30" : patient;
    running.push_back(std::make_unique<scripted_daemon>(
        tool({"--timeout", timeout, "--retry-limit", "1", "--poison", "poison", "--prints", "print",
              "--", broken_child, "--fault", fault})));
  }
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const outcome result = finish(*running[i]);
    INFO(faults[i].first << "\n" << result.output << result.error);
    words broken;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("not ok ")) continue;
      const std::size_t name = line.find(" - ") + 3;
      broken.push_back(line.substr(name, line.find(':') - name));
    }
    CHECK(broken == faults[i].second);
    CHECK(result.status == (faults[i].second.empty() ? 0 : 1));
  }
}

TEST_CASE("a check in which every rule was skipped is no success", "[check]") {
  const outcome result = check({"--only", "stray-print", "--", broken_child});
  INFO(result.output << result.error);
  CHECK(contains(result.output, "# SKIP no record was named at which the processor prints"));
  CHECK(result.status == 1);
  CHECK(contains(result.error, "no result: every rule was skipped (the first: no record was "));
}

const std::string answer_initialize =
    R"(read -r line; printf '\n{"action":"status","responseFor":"initialize"}\n'; )";

TEST_CASE("a rule that was not judged, since the child was too slow before it, is no success",
          "[check]") {
  const outcome result = check({"--only", "initialize", "lease-lost", "--timeout", "0.5", "--",
                                "/bin/sh", "-c", answer_initialize + "sleep 60"});
  INFO(result.output << result.error);
  CHECK(contains(result.output, "\nok 1 - initialize: "));
  CHECK(contains(result.output, "# SKIP no status for processRecords: none within 500 ms"));
  CHECK(contains(result.error,
                 "not judged, since the child missed --timeout before it came to "
                 "what the rule is about: lease-lost\n"));
  CHECK(result.status == 1);
}

TEST_CASE("a child that only answers initialize has no exit status to be judged by", "[check]") {
  const outcome result = check({"--only", "exit-status", "--timeout", patient, "--", "/bin/sh",
                                "-c", answer_initialize + "read -r line; exit 3"});
  INFO(result.output << result.error);
  CHECK(contains(result.output, "# SKIP it answers nothing but initialize"));
  CHECK(result.status == 1);
}

TEST_CASE("a child that writes without end does not hold up the check", "[check]") {
  const outcome result = check({"--only", "end-of-input-unanswered", "--timeout", "3", "--",
                                "/bin/sh", "-c", answer_initialize + "exec yes"});
  INFO(result.output << result.error);
  CHECK(contains(result.output, "neither a checkpoint nor a status"));
  CHECK(result.status == 1);
}

TEST_CASE("a child that outlives its input, or whose output somebody holds, is reported",
          "[check]") {
  const auto ends = [](const std::string& timeout, const std::string& script) {
    return check({"--only", "end-of-input", "--timeout", timeout, "--", "/bin/sh", "-c", script});
  };
  CHECK_FALSE(contains(ends(patient, "exit 0").output, "not ok"));
  CHECK(
      contains(ends("0.3", "exec sleep 60").output, "it did not end, or its output was held open"));
  CHECK(contains(ends("0.3", "sleep 60 & exit 0").output,
                 "it did not end, or its output was held open"));
  CHECK(
      contains(ends("0.3", "sleep 60 >/dev/null & exit 0").output, "or its output was held open"));
}

TEST_CASE("a signal that is ignored where the tool is started is not ignored in the child",
          "[check]") {
  const auto [way, number] =
      GENERATE(table<std::string, std::string>({{"sigint", "2"}, {"sigquit", "3"}}));
  scripted_daemon running(
      {"/bin/sh", "-c",
       "trap '' HUP INT QUIT TERM; exec \"$0\" check --only signals -- \"$1\" --break \"$2\"",
       KCLXX_TOOL, broken_child, way});
  const outcome result = finish(running);
  INFO(result.output);
  CHECK(contains(result.output, "not ok 1 - signals: "));
  CHECK(contains(result.output, "signal " + number + " ended it"));
}

TEST_CASE("the results are written as JUnit XML, too", "[check]") {
  const std::string file = std::string(KCLXX_TEST_DIRECTORY) + "/check-junit.xml";
  const std::vector<std::string> command{"--only",  "initialize", "lease-lost", "stray-print",
                                         "--junit", file,         "--",         broken_child,
                                         "--break", "lease-lost"};
  CHECK(check(command).status == 1);
  const std::string text = read_file(file);
  CHECK(contains(text, "tests=\"3\" failures=\"1\" skipped=\"1\""));
  CHECK(contains(text, "<testcase classname=\"kclxx.check\" name=\"lease-lost\""));
  CHECK(contains(text, "<failure message=\"no status for leaseLost: its output ended"));
  std::ofstream(file) << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<project/>\n";
  CHECK(check(command).status == 5);
  std::remove(file.c_str());
}

TEST_CASE(
    "a command line that makes no sense, and a child that cannot be started, have different "
    "statuses",
    "[check]") {
  CHECK(check({"--only", "initialise", "--", broken_child}).status == 2);
  CHECK(contains(check({"--only", "initialise", "--", broken_child}).error,
                 "there is no rule 'initialise'"));
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
