// SPDX-License-Identifier: Apache-2.0
// kclxx replay: a killed child's successor, and what both leave (--effects). The child is in
// Python.
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "process/replayed.hpp"
#include "support/catch.hpp"

using namespace kclxx::test;
using nlohmann::json;

namespace {

/// What is left when such a child is killed, compared with what is left otherwise.
forked_result effects_of(const replayed& place, const std::string& how, const std::string& faults,
                         words arguments) {
  arguments.insert(arguments.end(), {"--faults", faults, "--effects", "{dir}"});
  return place.replay(arguments, {KCLXX_PYTHON, KCLXX_TABLE_CHILD, how, "{dir}/table"});
}

std::filesystem::path kept_in(const std::string& out) {
  const std::size_t at = out.find("kept in       ");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = out.find('/', at);
  return out.substr(begin, out.find('\n', begin) - begin);
}

/// What `kept in` names exists, and is removed.
void remove_kept(const std::string& out) {
  const std::filesystem::path kept = kept_in(out);
  CHECK(std::filesystem::exists(kept / "without-faults/table"));
  CHECK(std::filesystem::exists(kept / "with-faults/table"));
  std::filesystem::remove_all(kept);
}

}  // namespace

TEST_CASE("what is exactly once stays so, wherever the child is killed", "[replay][effects]") {
  replayed tool;
  const std::string file = tool.dialogue(8, shard_ended);
  const std::string faults = GENERATE("kill-at=1", "kill-at=5", "kill-at=8", "kill=0.6,seed=3",
                                      "kill=0.5,kill-at=4,throttle=0.2");
  const auto result = effects_of(tool, "exactly-once", faults, {file});
  CAPTURE(faults, result.out);
  CHECK(result.status == 0);
  CHECK_THAT(result.out, Contains("\n  successors    "));
  CHECK_THAT(result.out, Contains("effects, compared with those of a run without faults\n"
                                  "  lines         25 the same, 0 lost, 0 extra\nok\n"));
  CHECK_THAT(result.out, Contains("resumes       after SHARD_END/0"));
}

TEST_CASE("a comparison of effects in which no fault happened is no success", "[replay][effects]") {
  replayed tool;
  const std::string file = tool.dialogue(3, shard_ended);
  const auto result = effects_of(tool, "exactly-once", "kill=0.000001", {file});
  CHECK(result.status == 1);
  CHECK_THAT(result.out, Contains("note          kill=1e-06 did not happen: there were "));
  CHECK_THAT(result.out, Contains("0 lost, 0 extra\n  no fault      happened"));
  const json report = json::parse(effects_of(tool, "exactly-once", "seed=2", {"--json", file}).out);
  CHECK(report["status"] == 1);
  CHECK(report["effects"]["had_fault"] == false);
}

TEST_CASE("a comparison of effects without a line is no success", "[replay][effects]") {
  replayed tool;
  const auto result = tool.replay(
      {"--faults", "kill-at=1", "--effects", "{dir}/empty", tool.dialogue(3, shard_ended)},
      {"/bin/sh", "-c", R"(touch "$3/empty"; exec "$0" "$1" "$2" "$3/table")", KCLXX_PYTHON,
       KCLXX_TABLE_CHILD, "exactly-once", "{dir}"});
  CHECK(result.status == 1);
  CHECK_THAT(result.out, Contains("0 lost, 0 extra\n  no line       was left"));
}

TEST_CASE("what comes twice is extra, line by line", "[replay][effects]") {
  replayed tool;
  const std::string file = tool.dialogue(4, shard_ended);
  const auto result = effects_of(tool, "at-least-once", "kill=0.3,seed=4", {"--json", file});
  CAPTURE(result.out);
  CHECK(result.status == 1);
  const json report = json::parse(result.out);
  const json& effects = report["effects"];
  CHECK(report["total"]["successors"] == 5);
  CHECK(effects["lost"] == json({{"count", 0}, {"first", json::array()}}));
  CHECK(effects["same"] == 13);
  // Four times a batch came again; the fifth kill was at the end of the shard.
  CHECK(effects["extra"]["count"] == 12);
  CHECK(effects["extra"]["first"].size() == 12);
  for (const auto& line : effects["extra"]["first"]) {
    CHECK(line.get<std::string>().starts_with("table: 1"));
  }
  remove_kept("kept in       " + effects["kept_in"].get<std::string>() + "\n");
}

TEST_CASE("what was checkpointed before it was written is lost", "[replay][effects]") {
  replayed tool;
  // The second checkpoint kills the child; the first batch was checkpointed and not yet written.
  const auto result =
      effects_of(tool, "buffered", "kill=0.3,seed=9", {tool.dialogue(4, shard_ended)});
  CAPTURE(result.out);
  CHECK(result.status == 1);
  CHECK_THAT(result.out, Contains("  lines         10 the same, 3 lost, 0 extra\n"
                                  "  lost          table: 100 one\n"
                                  "  lost          table: 101 two\n"
                                  "  lost          table: 102 three\n"
                                  "  kept in       "));
  CHECK_THAT(result.out, Contains("\nthe effects differ\n"));
  remove_kept(result.out);
}

TEST_CASE("effects that cannot be compared are refused with the reason", "[replay][effects]") {
  replayed place;
  const std::string file = place.dialogue(2);
  const auto refused = [&](const words& arguments, const words& child = {"{dir}"}) {
    const auto result = place.run(arguments, child);
    return std::to_string(result.status) + " " + result.err;
  };
  CHECK_THAT(refused({"--effects", "{dir}/x", file}),
             Contains("2 ") && Contains("--faults is missing"));
  CHECK_THAT(refused({"--faults", "kill-at=1", "--effects", "x", file}),
             Contains("2 ") && Contains("needs {dir}"));
  CHECK_THAT(refused({"--faults", "kill-at=1", "--effects", "{dir}/x", file}, {"checkpoint"}),
             Contains("2 ") && Contains("needs {dir}"));
  CHECK_THAT(refused({"--faults", "kill-at=1", "-"}, {}),
             Contains("2 ") && Contains("- cannot be read twice"));
  CHECK_THAT(refused({"--faults", "kill=0.1", "--expect", file}, {}),
             Contains("2 ") && Contains("--expect excludes"));
  CHECK_THAT(refused({"--faults", "kill=1", file}, {}), Contains("2 ") && Contains("below 1"));
  // No such file after a run without faults that went well; and one that did not.
  CHECK_THAT(refused({"--faults", "kill-at=1", "--effects", "{dir}/x", file}, {"5:{dir}"}),
             Contains("5 ") && Contains("/without-faults/x cannot be opened"));
  CHECK_THAT(
      refused({"--faults", "kill-at=1", "--effects", "{dir}/x", file}, {"5:{dir}", "exit:4"}),
      Contains("3 ") && Contains("the run without faults failed"));
}
